package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipes are the descriptors between the server and one run. The fields named init… are init's ends; the
// server lets go of them as soon as init has them.
type pipes struct {
	null                 *os.File
	control, initControl *os.File
	output, initOutput   *os.File
	input, initInput     *os.File // input is nil if the run gets no text
}

func newPipes(stdio Stdio) (p *pipes, err error) {
	p = new(pipes)
	defer func() {
		if err != nil {
			p.closeChild()
			p.closeServer()
		}
	}()
	if p.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return p, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p, os.NewSyscallError("socketpair", err)
	}
	// The server's end is handed to the poller, so that closing it ends a read; init's stays blocking.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return p, err
	}
	p.control = os.NewFile(uintptr(pair[0]), "control")
	p.initControl = os.NewFile(uintptr(pair[1]), "init's control")
	if p.output, p.initOutput, err = os.Pipe(); err != nil {
		return p, err
	}
	if stdio.Stdin == nil {
		p.initInput, err = os.Open(os.DevNull)
		return p, err
	}
	p.initInput, p.input, err = os.Pipe()
	return p, err
}

func (p *pipes) closeChild() { closeAll(p.null, p.initControl, p.initOutput, p.initInput) }

func (p *pipes) closeServer() { closeAll(p.control, p.output, p.input) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
