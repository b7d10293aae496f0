package lull

import (
	"testing"
	"testing/synctest"
	"time"
)

// busyFor has the processors busy for a while.
func busyFor(span time.Duration) {
	end := time.Now().Add(span)
	mu.Lock()
	defer mu.Unlock()
	busy = func() bool { return time.Now().Before(end) }
}

// forget has nothing go on, and nobody look at the processors before.
func forget() {
	mu.Lock()
	defer mu.Unlock()
	going, fresh, until, looked, busy = 0, 0, time.Time{}, time.Time{}, processorsBusy
}

func TestAwait(t *testing.T) {
	defer forget()
	closed := make(chan struct{})
	close(closed)
	for _, test := range []struct {
		name  string
		do    func()
		want  time.Duration
		hurry <-chan struct{}
	}{
		{"nothing goes on", func() {}, 0, nil},
		{"nothing goes on, and the processors are busy", func() { busyFor(time.Minute) }, 0, nil},
		{"something goes on and has the processors", func() { busyFor(300 * time.Millisecond); time.AfterFunc(time.Second, Begin()) }, 300 * time.Millisecond, nil},
		{"it ends", func() { busyFor(time.Minute); time.AfterFunc(200*time.Millisecond, Begin()) }, 200 * time.Millisecond, nil},
		{"it has them for long", func() { busyFor(time.Minute); time.AfterFunc(2*patience, Begin()) }, patience, nil},
		{"it has had them for long", func() { busyFor(time.Minute); time.AfterFunc(3*patience, Begin()); time.Sleep(2 * patience) }, 0, nil},
		{"something else ends meanwhile", func() { busyFor(time.Minute); time.AfterFunc(3*patience, Begin()); time.Sleep(2 * patience); Begin()() }, young, nil},
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
				forget()
				busyFor(0)
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
				if going != 0 || fresh != 0 {
					t.Errorf("%d things go on, %d of them fresh", going, fresh)
				}
			})
		})
	}
}

// However many wait, the processors are looked at once in an interval.
func TestAwaitLooksRarely(t *testing.T) {
	defer forget()
	synctest.Test(t, func(t *testing.T) {
		forget()
		looks := 0
		mu.Lock()
		busy = func() bool { looks++; return true } // mu is held
		mu.Unlock()
		Begin()
		for range 5 {
			go Await(nil)
		}
		time.Sleep(2 * patience)
		synctest.Wait()
		if most := int(patience/lookInterval) + 1; looks == 0 || looks > most {
			t.Errorf("%d looks, want %d at most", looks, most)
		}
	})
}
