package sandbox

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A run's beginning fits into what the pipe holds. Of a user who has many pipes the kernel gives a new one little room: then
// a shell is not started ahead, as init would wait for room in the pipe for a shell that waits for init.
func TestShellAheadWithoutRoomInThePipe(t *testing.T) {
	const many = 1100 // of 16 pages each, pipe-user-pages-soft being 16384
	for range many {
		r, w, err := os.Pipe()
		if err != nil {
			t.Skip("so many pipes can't be had: ", err)
		}
		defer r.Close()
		defer w.Close()
	}
	n := isolating(newNative(t))
	spec := bashSpec(t, "echo "+strings.Repeat("'", 4000)+"ends")
	if exit, out := doAhead(t, n, spec, spec); exit != (Exit{}) || out != "ends\n" {
		t.Errorf("%+v, %q", exit, out)
	}
}

// refusing is a subject that no filter can be put around, as a shell that was killed.
type refusing struct{}

func (refusing) enclose(*wall) error                        { return nil }
func (refusing) installFilter([]rule, uintptr) (int, error) { return -1, unix.ESRCH }

// accepting is one that has any filter, and gets this listener.
type accepting struct {
	refusing
	listener int
}

func (a accepting) installFilter([]rule, uintptr) (int, error) { return a.listener, nil }

// Where a shell can't be confined, the payload that is started in its place has the renamer.
func TestConfineAnotherAfterARefusal(t *testing.T) {
	r := &renamer{start: make(chan listener, 2)}
	if err := confine(refusing{}, nil, r, nil); err == nil {
		t.Fatal("confined")
	}
	const number = 1 << 20 // no descriptor
	if err := confine(accepting{listener: number}, nil, r, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if l, ok := <-r.start; !ok || l != number {
			t.Errorf("%d, %t", l, ok)
		}
	}
}
