package lull

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for _, test := range []struct {
		name  string
		do    func()
		want  time.Duration
		hurry <-chan struct{}
	}{
		{"nothing goes on", func() {}, 0, nil},
		{"something has ended", func() { Begin()() }, answer, nil},
		{"something begins", func() { time.AfterFunc(answer, Begin()) }, young, nil},
		{"something goes on for long", func() { time.AfterFunc(time.Second, Begin()) }, young, nil},
		{"something goes on while another ends", func() {
			time.AfterFunc(time.Second, Begin())
			time.AfterFunc(young-1, Begin())
		}, young - 1 + answer, nil},
		{"something goes on after another has ended", func() {
			time.AfterFunc(time.Second, Begin())
			Begin()()
		}, young, nil},
		{"it does not end", func() {
			Begin()()
			for i := range 1000 {
				time.AfterFunc(time.Duration(i+1)*time.Millisecond, func() { Begin()() })
			}
		}, longest, nil},
		{"somebody is in a hurry", func() { time.AfterFunc(time.Second, Begin()) }, 0, closed},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				going, until = 0, time.Time{}
				test.do()
				began := time.Now()
				Await(test.hurry)
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
