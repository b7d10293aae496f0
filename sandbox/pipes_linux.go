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
	input, initInput     *os.File // input is nil if the run gets no text; see keep
	egress, initEgress   *os.File // egress is nil if the run has none; see keep
}

func newPipes() (p *pipes, err error) {
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
	if p.control, p.initControl, err = socketPair("control"); err != nil {
		return p, err
	}
	if p.egress, p.initEgress, err = socketPair("egress"); err != nil {
		return p, err
	}
	if p.output, p.initOutput, err = os.Pipe(); err != nil {
		return p, err
	}
	p.initInput, p.input, err = os.Pipe()
	return p, err
}

func socketPair(name string) (server, child *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	// The server's end is handed to the poller, so that closing it ends a read; init's stays blocking.
	err = unix.SetNonblock(pair[0], true)
	return os.NewFile(uintptr(pair[0]), name), os.NewFile(uintptr(pair[1]), "init's "+name), err
}

// keep closes what a run does not need of the server's ends.
func (p *pipes) keep(input, egress bool) {
	if !input {
		p.input.Close()
		p.input = nil
	}
	if !egress {
		p.egress.Close()
		p.egress = nil
	}
}

// child are the descriptors that init is started with, from 0 on.
func (p *pipes) child() []*os.File {
	return []*os.File{p.null, p.null, p.null, p.initControl, p.initOutput, p.initInput, p.initEgress}
}

// initEnds are what child repeats, and numInitEnds how many they are; pipesOf gives the pipes of which nothing is known but
// those.
func (p *pipes) initEnds() []*os.File {
	return []*os.File{p.null, p.initControl, p.initOutput, p.initInput, p.initEgress}
}

const numInitEnds = 5

func pipesOf(ends [numInitEnds]*os.File) *pipes {
	return &pipes{null: ends[0], initControl: ends[1], initOutput: ends[2], initInput: ends[3], initEgress: ends[4]}
}

func (p *pipes) closeChild() { closeAll(p.initEnds()...) }

func (p *pipes) closeServer() { closeAll(p.control, p.output, p.input, p.egress) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
