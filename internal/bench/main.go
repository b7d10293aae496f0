// Command bench measures what a run costs, always as pairs taken in turn within one run of the program,
// and reports medians and their ratios: figures of one machine at one time say little by themselves.
//
//	go run ./internal/bench ./airlock            everything
//	go run ./internal/bench ./airlock egress     one of start, size, changes and egress
//
// It asks four questions. What does run_shell add to a command that does nothing, beside starting the same
// command bare and under bubblewrap (without an overlay, so without transactions)? And does a run that
// changes one file cost more in a large workspace than in a small one? The second ratio has a bound, and
// exceeding it is exit status 1. And what does a run cost that changes many files, beside cp -a of them? And how fast
// do a run's connections open and move bytes, beside direct ones?
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

// sizeBound is what the ratio of the large workspace to the small one must stay under.
const sizeBound = 1.3

func main() {
	parts := map[string]func([]string) error{ // of benchEgress, which starts this program for them
		"client": client,
		"relay":  func(args []string) error { return relay(args[0]) },
	}
	if len(os.Args) > 2 && parts[os.Args[1]] != nil {
		if err := parts[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	only := ""
	if len(os.Args) == 3 {
		only = os.Args[2]
	}
	if len(os.Args) < 2 || len(os.Args) > 3 || !slices.Contains([]string{"", "start", "size", "changes", "egress"}, only) {
		fmt.Fprintln(os.Stderr, "usage: bench PATH-OF-AIRLOCK [start|size|changes|egress]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	within, err := bench(ctx, os.Args[1], only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !within {
		fmt.Printf("FAIL: the size of the workspace must not matter: the ratio must stay under %.1f\n", sizeBound)
		os.Exit(1)
	}
}

// bench asks one question, or all of them. within tells whether the ratio that has a bound is under it.
func bench(ctx context.Context, airlock, only string) (within bool, err error) {
	airlock, err = filepath.Abs(airlock)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "airlock-bench-")
	if err != nil {
		return false, err
	}
	defer func() {
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	host, err := describeHost(dir)
	if err != nil {
		return false, err
	}
	fmt.Println(host)
	within = true
	for _, question := range []struct {
		name string
		ask  func(ctx context.Context, airlock, dir string) error
	}{
		{"start", benchStart},
		{"size", func(ctx context.Context, airlock, dir string) error {
			ratio, err := benchSize(ctx, airlock, dir)
			within = ratio < sizeBound
			return err
		}},
		{"changes", benchChanges},
		{"egress", benchEgress},
	} {
		if only != "" && only != question.name {
			continue
		}
		if err := question.ask(ctx, airlock, filepath.Join(dir, question.name)); err != nil {
			return false, err
		}
	}
	return within, nil
}
