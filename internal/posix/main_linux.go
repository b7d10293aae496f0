// Command posix compares what programs come to in a run with what they come to without airlock: random
// sequences of calls on files, CPython's own tests of what has to do with files, git, and other programs.
// Each is done twice by the same user: bare, in a directory, and in a run, whose changes land. What comes of
// it must be the same, in the run and on the host afterwards. It exits with status 1 if anything is not.
//
//	go run ./internal/posix [-only trees|unittests|git|programs] ./airlock
//
// What differs and stays so is in explained.go, each with its reason.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"
)

// options say what is done, and how much.
type options struct {
	only                            string
	seed, trees, rounds, operations int
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == playTreeCommand {
		if err := playTreeMain(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.StringVar(&o.only, "only", "", "the one `suite` to play: trees, unittests, git or programs")
	flag.IntVar(&o.seed, "seed", 1, "the first tree's `seed`")
	flag.IntVar(&o.trees, "trees", 50, "how `many` trees")
	flag.IntVar(&o.rounds, "rounds", 2, "how `many` runs on each tree, one after the other")
	flag.IntVar(&o.operations, "operations", 60, "how `many` calls a run makes on each tree")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: posix [flags] PATH-OF-AIRLOCK")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compareAll(ctx, os.Stdout, flag.Arg(0), o); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
}

// playTreeCommand is this program's name for itself as the payload, with a round and a number of operations.
const playTreeCommand = "play-tree"

func playTreeMain(round, operations string) error {
	r, err := strconv.ParseUint(round, 10, 64)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(operations)
	if err != nil {
		return err
	}
	return playTree(os.Stdout, r, n)
}

// notHere says that a suite could not be played on this host.
type notHere struct{ what string }

func (e *notHere) Error() string { return "not run: " + e.what }

// compareAll plays the suites. One that can't be played here is said, and in CI, where all must be, an error.
func compareAll(ctx context.Context, out io.Writer, airlock string, o options) (err error) {
	s, err := newSides(airlock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	differ, played := 0, 0
	for _, suite := range []struct {
		name string
		play func() ([]string, error)
	}{
		{"trees", func() ([]string, error) { return compareTrees(ctx, out, s, o) }},
		{"unittests", func() ([]string, error) { return compareUnittests(ctx, out, s) }},
		{"git", func() ([]string, error) {
			return compareScenarios(ctx, out, s, "git", gitScenarios, checkRepositories())
		}},
		{"programs", func() ([]string, error) {
			return compareScenarios(ctx, out, s, "programs", programScenarios, "")
		}},
	} {
		if o.only != "" && o.only != suite.name {
			continue
		}
		start := time.Now()
		differences, err := suite.play()
		for _, d := range differences {
			fmt.Fprintf(out, "\n%s\n", d)
		}
		differ += len(differences)
		played++
		var missing *notHere
		if errors.As(err, &missing) && os.Getenv("CI") != "true" {
			fmt.Fprintf(out, "\n*** %v\n\n", err)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "   %s: %.1f s\n", suite.name, time.Since(start).Seconds())
	}
	switch {
	case played == 0:
		return fmt.Errorf("no suite is called %q", o.only)
	case differ > 0:
		return fmt.Errorf("%d differences", differ)
	}
	return nil
}
