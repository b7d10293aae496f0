// Command bench measures what a run costs, always as pairs taken in turn within one run of the program,
// and reports medians and their ratios: figures of one machine at one time say little by themselves.
//
//	go run ./internal/bench ./airlock [PART…]
//
// It asks these questions, a part each, all unless some are named. start: what does run_shell add to a command that does nothing, beside starting the same
// command bare and under bubblewrap (without an overlay, so without transactions)? size: does a run that
// changes one file cost more in a large workspace than in a small one? That ratio has a bound, and exceeding it is
// exit status 1. changes: what does a run cost that changes many files, beside cp -a of them? packages: what does an
// environment of many files cost? egress: how fast do a run's connections open and move bytes, beside direct ones?
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
	roles := map[string]func([]string) error{ // of benchEgress, which starts this program for them
		"client": client,
		"relay":  relay,
		"cell":   inCell,
	}
	if len(os.Args) > 2 && roles[os.Args[1]] != nil {
		if err := roles[os.Args[1]](os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	parts := []string{"start", "size", "changes", "packages", "egress"}
	if len(os.Args) < 2 || slices.ContainsFunc(os.Args[2:], func(p string) bool { return !slices.Contains(parts, p) }) {
		fmt.Fprintln(os.Stderr, "usage: bench PATH-OF-AIRLOCK [start|size|changes|packages|egress]…")
		os.Exit(2)
	}
	if len(os.Args) > 2 {
		parts = os.Args[2:]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	within, err := bench(ctx, os.Args[1], parts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !within {
		fmt.Printf("FAIL: the size of the workspace must not matter: the ratio must stay under %.1f\n", sizeBound)
		os.Exit(1)
	}
}

// bench asks the questions of the parts. within tells whether the ratio that has a bound is under it.
func bench(ctx context.Context, airlock string, parts []string) (within bool, err error) {
	airlock, err = filepath.Abs(airlock)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "airlock-bench-")
	if err != nil {
		return false, err
	}
	defer func() {
		_ = removeTrees(dir) // else what is sealed can't be removed
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
	for _, part := range parts {
		dir := filepath.Join(dir, part)
		switch part {
		case "start":
			err = benchStart(ctx, airlock, dir)
		case "size":
			var ratio float64
			ratio, err = benchSize(ctx, airlock, dir)
			within = ratio < sizeBound
		case "changes":
			err = benchChanges(ctx, airlock, dir)
		case "packages":
			err = benchPackages(ctx, airlock, dir)
		case "egress":
			err = benchEgress(ctx, airlock, dir)
		}
		if err != nil {
			return false, err
		}
	}
	return within, nil
}
