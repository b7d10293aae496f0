// Command bench measures what a run costs, always as pairs taken in turn within one run of the program,
// and reports medians and their ratios: figures of one machine at one time say little by themselves.
//
//	go run ./internal/bench [-svg FILE] [-rounds N] ./airlock [PART…]
//
// It asks these questions, a part each, all unless some are named. start: what does run_shell add to a command that does nothing, beside starting the same
// command bare and under bubblewrap (without an overlay, so without transactions)? ready: how soon does a server answer, and what
// does it hold while it waits? parallel: what do eight commands at once take? work: what does a build take, or git, or an
// unpacking? landing: what does it take to land many files, or a large one, beside cp -a? size: does a run that
// changes one file cost more in a large workspace than in a small one? That ratio has a bound, and exceeding it is
// exit status 1. changes: what does a run cost that changes many files, beside cp -a of them? packages: what does an
// environment of many files cost? egress: how fast do a run's connections open and move bytes, beside direct ones?
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// sizeBound is what the ratio of the large workspace to the small one must stay under.
const sizeBound = 1.3

// bench asks the questions. A part is a method of its name.
type bench struct {
	airlock string // the binary
	most    int    // bounds the rounds of every part, and those before that count nothing; 0 is no bound
}

// rounds is n, or as many as are wanted.
func (b bench) rounds(n int) int {
	if b.most > 0 {
		return min(n, b.most)
	}
	return n
}

// allParts are the parts that are asked if none is named.
var allParts = []string{"start", "ready", "parallel", "work", "landing", "size", "changes", "packages", "egress"}

func main() {
	roles := map[string]func([]string) error{ // of egress, which starts this program for them
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
	most := flag.Int("rounds", 0, "take each way at most this `number` of times, and at most as often before it counts")
	svg := flag.String("svg", "", "draw the cost of a run into this `file`, which is a part of its own")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: bench [-svg FILE] [-rounds N] PATH-OF-AIRLOCK ["+strings.Join(allParts, "|")+"]…")
		flag.PrintDefaults()
	}
	flag.Parse()
	parts := flag.Args()
	if len(parts) > 0 {
		parts = parts[1:]
	}
	for _, part := range parts {
		if !slices.Contains(allParts, part) {
			fmt.Fprintf(os.Stderr, "bench: there is no part %q; flags come before the path of airlock\n", part)
			flag.Usage()
			os.Exit(2)
		}
	}
	if flag.NArg() < 1 {
		flag.Usage()
		os.Exit(2)
	}
	switch {
	case *svg != "":
		parts = append(parts, "cost")
	case len(parts) == 0:
		parts = allParts
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	within, err := ask(ctx, bench{flag.Arg(0), *most}, parts, *svg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !within {
		fmt.Printf("FAIL: the size of the workspace must not matter: the ratio must stay under %.1f\n", sizeBound)
		os.Exit(1)
	}
}

// ask asks the questions of the parts. within tells whether the ratio that has a bound is under it.
func ask(ctx context.Context, b bench, parts []string, svg string) (within bool, err error) {
	b.airlock, err = filepath.Abs(b.airlock)
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
			err = b.start(ctx, dir)
		case "ready":
			err = b.ready(ctx, dir)
		case "parallel":
			err = b.parallel(ctx, dir)
		case "work":
			err = b.work(ctx, dir)
		case "landing":
			err = b.landing(ctx, dir)
		case "size":
			var ratio float64
			ratio, err = b.size(ctx, dir)
			within = ratio < sizeBound
		case "changes":
			err = b.changes(ctx, dir)
		case "cost":
			err = b.cost(ctx, dir, svg)
		case "packages":
			err = b.packages(ctx, dir)
		case "egress":
			err = b.egress(ctx, dir)
		}
		if err != nil {
			return false, err
		}
	}
	return within, nil
}
