package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	//go:embed git.scenarios
	gitScenarios string
	//go:embed programs.scenarios
	programScenarios string
)

// compareScenarios plays each scenario bare and in a run. What it prints, its exit status, the tree that it leaves, and
// what check says there afterwards on the host must be equal.
func compareScenarios(ctx context.Context, out io.Writer, s *sides, name, file, check string) (differences []string, err error) {
	all, err := parseScenarios(file)
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		for _, program := range c.needs {
			if _, err := exec.LookPath(program); err != nil {
				return nil, &notHere{fmt.Sprintf("the scenario %q: %v", c.name, err)}
			}
		}
		bare, workspace, err := s.pair(filepath.Join(name, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		for _, dir := range []string{bare, workspace} {
			if _, err := s.bare(ctx, dir, "bash", "-euc", c.setup); err != nil {
				return nil, fmt.Errorf("%s: prepare: %w", c.name, err)
			}
		}
		inRun := "exec 2>&1\n" + c.run
		a, bareErr := s.bare(ctx, bare, "bash", "-euc", inRun)
		b, said, runErr := s.run(ctx, workspace, "bash", "-euc", inRun)
		anywhere := strings.NewReplacer(bare, "/TOP", workspace, "/TOP")
		neutral := func(out []byte, err error) []string {
			return append(strings.Split(anywhere.Replace(string(out)), "\n"), fmt.Sprint("exit status ", exitStatus(err)))
		}
		tree := func(dir string) []string {
			lines := strings.Split(anywhere.Replace(strings.Join(describeTree(dir, true), "\n")), "\n")
			return slices.DeleteFunc(lines, below(protected(said)))
		}
		found := func(where, text string) bool {
			if text != "" {
				differences = append(differences, fmt.Sprintf("%s: %s:\n%s\n%s", c.name, where, text, said))
			}
			return text != ""
		}
		if found("what it prints", difference(neutral(a, bareErr), neutral(b, runErr))) ||
			found("the tree", difference(tree(bare), tree(workspace))) {
			continue
		}
		if check == "" || c.unchecked != "" {
			continue
		}
		a, bareErr = s.bare(ctx, bare, "bash", "-c", "exec 2>&1\n"+check)
		b, runErr = s.bare(ctx, workspace, "bash", "-c", "exec 2>&1\n"+check)
		found("what is said afterwards", difference(neutral(a, bareErr), neutral(b, runErr)))
	}
	fmt.Fprintf(out, "   %d scenarios of %s: %d differ\n", len(all), name, len(differences))
	return differences, nil
}

// protected are the paths that a landing said it withholds by design: hooks, configuration, .gitmodules.
func protected(said string) (paths []string) {
	item := regexp.MustCompile(`([^ ]+) \(protected(?:: "(?:[^"\\]|\\.)*")?\)`) // some say what of it is
	for line := range strings.Lines(said) {
		if list, ok := strings.CutPrefix(line, "airlock: withheld: "); ok {
			for _, m := range item.FindAllStringSubmatch(list, -1) {
				paths = append(paths, m[1])
			}
		}
	}
	return paths
}

// below reports whether a line of describeTree is about one of paths, or about something in it.
func below(paths []string) func(line string) bool {
	return func(line string) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			rest, ok := strings.CutPrefix(line, strconv.Quote(path)[:len(strconv.Quote(path))-1])
			return ok && (rest[0] == '"' || rest[0] == '/')
		})
	}
}

// checkRepositories has git say all that it knows of every repository.
func checkRepositories() string {
	prelude, _, _ := strings.Cut(gitScenarios, "\n=== ")
	return prelude + `
find . -name .git -o -name '*.git' -prune | sort | while read -r dir; do
	echo "== $dir"
	case $dir in */.git) cd "$dir/..";; *) cd "$dir";; esac
	state
	cd - > /dev/null
done`
}

func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}
