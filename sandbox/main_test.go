package sandbox

import (
	"os"
	"testing"
)

// roles are what this test binary does when it is executed as "BINARY role ARGUMENTS…": inside a
// sandbox, to try system calls that no shell makes, or outside, as a server that can be killed.
var roles = map[string]func(args []string){}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			role(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// firstWrite tells when a run has written something.
type firstWrite struct {
	once chan struct{}
	done bool
}

func (w *firstWrite) Write(b []byte) (int, error) {
	if !w.done {
		w.done = true
		close(w.once)
	}
	return len(b), nil
}
