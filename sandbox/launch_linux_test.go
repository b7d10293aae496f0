package sandbox

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A refusal names what is missing, and what to do, whatever number the kernel gave.
func TestCloneError(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSPC, unix.EACCES, unix.EINVAL} {
		err := cloneError(&os.PathError{Op: "fork/exec", Path: "/proc/self/fd/64", Err: errno})
		e := new(SetupError)
		if !errors.As(err, &e) || e.Hint == "" || !errors.Is(err, errno) {
			t.Errorf("%v: %v (hint %q)", errno, err, e.Hint)
		}
		if want := "sandbox: create namespaces: user namespaces are not available: " + errno.Error(); err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := cloneError(unix.ENOMEM); err.Error() != "sandbox: start init: "+unix.ENOMEM.Error() {
		t.Errorf("got %v", err)
	}
}

func TestExplain(t *testing.T) {
	err := explain(&SetupError{Op: "make mounts private", Path: "/", Err: unix.EACCES})
	if e := new(SetupError); !errors.As(err, &e) || e.Hint == "" || !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
	other := &SetupError{Op: "clone mount", Path: "/x", Err: unix.EACCES}
	if err := explain(other); err != error(other) || other.Hint != "" {
		t.Errorf("got %v (hint %q)", err, other.Hint)
	}
}

func TestFailureOfNoKind(t *testing.T) {
	if got := newFailure(errors.New("plain")).setupError().Error(); got != "sandbox: build the sandbox: plain" {
		t.Errorf("got %s", got)
	}
}
