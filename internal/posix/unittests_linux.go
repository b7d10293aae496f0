package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed unittests.py
var unittests []byte

// modules are the tests of CPython's own that look hardest at files.
var modules = []string{
	"test_os", "test_shutil", "test_tempfile", "test_pathlib", "test_zipfile", "test_tarfile", "test_glob",
}

// python is the interpreter that brings its tests, Debian's.
const python = "/usr/bin/python3"

// outcomes are the results of tests by their names.
type outcomes map[string][]string

// compareUnittests runs each module bare and in a run, in a working directory and with a TMPDIR that lie in the
// workspace. Each test must come to the same, but for those that are explained.
func compareUnittests(ctx context.Context, out io.Writer, s *sides) (differences []string, err error) {
	probe := exec.CommandContext(ctx, python, "-c", "import test.test_os")
	probe.Dir = os.TempDir() // it tries to write
	if text, err := probe.CombinedOutput(); err != nil {
		return nil, &notHere{"CPython's tests (Debian has them in libpython3-testsuite): " + string(tail(text))}
	}
	bare, workspace, err := s.pair("unittests")
	if err != nil {
		return nil, err
	}
	script := filepath.Join(filepath.Dir(s.program), "unittests.py")
	if err := os.WriteFile(script, unittests, 0o644); err != nil {
		return nil, err
	}
	tests, failed := 0, 0
	for _, module := range modules {
		file := module + ".json"
		argv := []string{"env", "", python, script, file, "test." + module}
		argv[1] = "TMPDIR=" + filepath.Join(bare, "tmp")
		if _, err := s.bare(ctx, bare, argv...); err != nil {
			return nil, err
		}
		argv[1] = "TMPDIR=" + filepath.Join(workspace, "tmp")
		if _, _, err := s.run(ctx, workspace, argv...); err != nil {
			return nil, err
		}
		x, err := readOutcomes(filepath.Join(bare, file))
		if err != nil {
			return nil, err
		}
		y, err := readOutcomes(filepath.Join(workspace, file))
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(x.with(y))) {
			tests++
			if x.failed(name) {
				failed++
			}
			if slices.EqualFunc(x[name], y[name], sameOutcome) {
				continue
			}
			if why, known := explained[name]; known {
				fmt.Fprintf(out, "   explained: %s: %s\n", name, why)
				continue
			}
			differences = append(differences, fmt.Sprintf("%s:\nbare: %q\nrun:  %q", name, x[name], y[name]))
		}
		// What tests leave behind lands; there is nothing to leave.
		left, err := listDirectory(workspace)
		if left = slices.DeleteFunc(left, func(n string) bool { return strings.HasSuffix(n, ".json") || n == "tmp" }); len(left) > 0 || err != nil {
			return nil, errors.Join(err, fmt.Errorf("%s left %q behind", module, left))
		}
	}
	fmt.Fprintf(out, "   %d tests of CPython's, of which %d fail bare: %d differ\n", tests, failed, len(differences))
	return differences, nil
}

func readOutcomes(file string) (o outcomes, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(o) == 0 {
		return nil, fmt.Errorf("%s: no test was run", file)
	}
	return o, nil
}

func (o outcomes) with(p outcomes) outcomes {
	all := maps.Clone(o)
	maps.Copy(all, p)
	return all
}

func (o outcomes) failed(name string) bool {
	return slices.ContainsFunc(o[name], func(s string) bool { return strings.HasPrefix(s, "failed: ") })
}

// sameOutcome compares two outcomes without their words, which hold times and names of temporary files. An
// exception of the same class is the same.
func sameOutcome(a, b string) bool {
	return outcomeClass(a) == outcomeClass(b)
}

func outcomeClass(s string) string {
	outcome, words, ok := strings.Cut(s, ": ")
	if ok && outcome == "failed" {
		class, _, _ := strings.Cut(words, ":")
		return outcome + ": " + class
	}
	return outcome
}
