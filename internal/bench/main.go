// Command bench measures what a run costs, always as pairs taken in turn within one run of the program,
// and reports medians and their ratios: figures of one machine at one time say little by themselves.
//
//	go run ./internal/bench ./airlock
//
// It asks three questions. What does run_shell add to a command that does nothing, beside starting the same
// command bare and under bubblewrap (without an overlay, so without transactions)? And does a run that
// changes one file cost more in a large workspace than in a small one? The second ratio has a bound, and
// exceeding it is exit status 1. And what does a run cost that changes many files, beside cp -a of them?
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// sizeBound is what the ratio of the large workspace to the small one must stay under.
const sizeBound = 1.3

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: bench PATH-OF-AIRLOCK")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	within, err := bench(ctx, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !within {
		fmt.Printf("FAIL: the size of the workspace must not matter: the ratio must stay under %.1f\n", sizeBound)
		os.Exit(1)
	}
}

func bench(ctx context.Context, airlock string) (within bool, err error) {
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
	if err := benchStart(ctx, airlock, filepath.Join(dir, "start")); err != nil {
		return false, err
	}
	ratio, err := benchSize(ctx, airlock, filepath.Join(dir, "size"))
	if err != nil {
		return false, err
	}
	return ratio < sizeBound, benchChanges(ctx, airlock, filepath.Join(dir, "changes"))
}
