package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// warmUps is how often each way is taken before times count.
const warmUps = 5

// way is one of the things that are compared.
type way struct {
	name string
	do   func() error // one time
	// before is done before each time, and counts nothing; nil for nothing.
	before func() error
	// measure does it in place of do, and says how long what counts of it took.
	measure func() (time.Duration, error)
	times   []time.Duration
	// notRun says why the way can't be taken here; "" if it can.
	notRun string
}

// takeInTurn takes each way once a round, so that whatever else the machine does falls on all of them.
func (b bench) takeInTurn(rounds int, ways []*way) error {
	for round := range b.rounds(warmUps) + b.rounds(rounds) {
		for _, w := range ways {
			if w.notRun != "" {
				continue
			}
			if w.before != nil {
				if err := w.before(); err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
			}
			took, err := w.once()
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round >= b.rounds(warmUps) {
				w.times = append(w.times, took)
			}
		}
	}
	return nil
}

// once takes the way one time.
func (w *way) once() (time.Duration, error) {
	if w.measure != nil {
		return w.measure()
	}
	start := time.Now()
	err := w.do()
	return time.Since(start), err
}

// median returns the middle time; for an even number, the lower of the two.
func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[(len(sorted)-1)/2]
}

// table prints the ways with their ratio to the first, as a table in Markdown. The spread is that of the
// middle half of the times.
func table(title string, ways []*way) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n| | median | middle half | least | ratio |\n|---|---:|---:|---:|---:|\n", title)
	base := median(ways[0].times)
	for _, w := range ways {
		if w.notRun != "" {
			fmt.Fprintf(&b, "| %s | not run: %s | | | |\n", w.name, w.notRun)
			continue
		}
		low, high := middleHalf(w.times)
		fmt.Fprintf(&b, "| %s | %s ms | %s to %s | %s | %.2f |\n", w.name, ms(median(w.times)), ms(low), ms(high), ms(slices.Min(w.times)),
			float64(median(w.times))/float64(base))
	}
	return b.String()
}

// middleHalf gives the bounds of the half of the times that lies in the middle.
func middleHalf(times []time.Duration) (low, high time.Duration) {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/4], sorted[len(sorted)*3/4]
}

func ms(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000)
}
