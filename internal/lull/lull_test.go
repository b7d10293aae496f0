package lull

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func()
		want time.Duration
	}{
		{"nothing goes on", func() {}, 0},
		{"something has ended", func() { Begin()() }, answer},
		{"something begins", func() { time.AfterFunc(answer, Begin()) }, young},
		{"something goes on for long", func() { time.AfterFunc(time.Second, Begin()) }, young},
		{"something goes on while another ends", func() {
			time.AfterFunc(time.Second, Begin())
			time.AfterFunc(young-1, Begin())
		}, young - 1 + answer},
		{"something goes on after another has ended", func() {
			time.AfterFunc(time.Second, Begin())
			Begin()()
		}, young},
		{"it does not end", func() {
			Begin()()
			for i := range 1000 {
				time.AfterFunc(time.Duration(i+1)*time.Millisecond, func() { Begin()() })
			}
		}, longest},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				going, until = 0, time.Time{}
				test.do()
				began := time.Now()
				Await()
				// What ends at the same moment may be a little late.
				if got := time.Since(began); got < test.want || got > test.want+answer {
					t.Errorf("waited %v, want %v", got, test.want)
				}
				time.Sleep(2 * time.Second)
				mu.Lock()
				defer mu.Unlock()
				if going != 0 {
					t.Errorf("%d things go on", going)
				}
			})
		})
	}
}
