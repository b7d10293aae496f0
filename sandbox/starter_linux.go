package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// starter is a process of airlock's that starts the inits, because the server would pay for it. A clone into a new user
// namespace can't share its memory with the child, as Go's others do: whoever clones has to write the child's id maps
// while it waits. So it copies the page tables, and every page that is written to afterwards is a fault. A server that
// starts inits itself meets some 250 of them in its next run (docs/design/0027); the starter has next to no memory of its
// own, and nobody waits for it.
//
//	server                                        starter
//	  | -- starterRequest{uid, gid} + files --------> |  clones an init with these ends, and executes the binary
//	  | <- starterReply{pid} + its pidfd ------------ |  or starterReply{failed}
//	  | -- starterRequest{reap: pid} ---------------> |  once the pidfd says that it is a zombie
//	  | <- starterReply{state} ---------------------- |
//	  | ~~ end of file ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~> |  exits
//
// Each message is one packet, and one is answered before the next is sent. An init is reaped only when the server says
// so: until then its number is its own. A starter that is gone is replaced at the next start; the inits of the
// one before it live on, or end with their server like all others.
//
// As a namespaceMaker it makes the namespaces by clone(2). The zero value starts its process when it is needed.
type starter struct {
	mu     sync.Mutex
	cmd    *exec.Cmd // nil if there is none
	conn   *os.File
	closed bool
}

type starterRequest struct {
	UID  int `json:"uid"`
	GID  int `json:"gid"`
	Reap int `json:"reap,omitempty"` // the process id of an init that has ended; nothing is started then
}

type starterReply struct {
	PID    int      `json:"pid,omitempty"`
	State  string   `json:"state,omitempty"`
	Failed *failure `json:"failed,omitempty"`
}

const (
	// maxStarterPacket bounds a message in bytes: the longest holds an error with its hint.
	maxStarterPacket = 16 << 10
	// starterTime is how long an answer may take.
	starterTime = 10 * time.Second
	// starterGone is said in place of the state of an init that nobody can ask for.
	starterGone = "its starter is gone"
)

// start implements namespaceMaker.
func (s *starter) start(exe *os.File, spec Spec, pipes *pipes) (initProcess, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply, rights, err := s.ask(starterRequest{UID: spec.UID, GID: spec.GID}, append(pipes.initEnds(), exe)...)
	if err != nil {
		return nil, &SetupError{
			Op: "start init", Err: err,
			Hint: "a security module or a limit on processes may keep airlock from executing itself; airlock doctor tries",
		}
	}
	if reply.Failed != nil {
		return nil, reply.Failed.setupError()
	}
	if len(rights) != 1 {
		return nil, &SetupError{Op: "start init", Err: errors.New("bug: the starter gave no pidfd")}
	}
	return &clonedInit{starter: s, pid: reply.PID, pidfd: rights[0]}, nil
}

// reap gives the state of an init that has ended. A starter that is gone has no children: whoever took them over reaps them.
func (s *starter) reap(pid int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return starterGone
	}
	reply, _, err := s.ask(starterRequest{Reap: pid})
	if err != nil {
		return err.Error()
	}
	return reply.State
}

// beginAhead has the process there when it is asked. A failure shows then.
func (s *starter) beginAhead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.begin()
}

// begin starts the process, unless there is one. It is executed from the host's file, which the server itself was
// executed from: there is no need to wait for the sealed copy, since no run comes to see a starter. mu is held.
func (s *starter) begin() error {
	if s.closed {
		return errors.New("bug: the backend is closed")
	}
	if s.cmd != nil {
		return nil
	}
	exe, err := os.Open(ownBinary())
	if err != nil {
		return err
	}
	defer exe.Close()
	cmd, conn, err := startRole(exe, starterName)
	if err != nil {
		return err
	}
	s.cmd, s.conn = cmd, conn
	limit := unix.NsecToTimeval(starterTime.Nanoseconds())
	if err := unix.SetsockoptTimeval(int(s.conn.Fd()), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return errors.Join(os.NewSyscallError("setsockopt", err), s.end())
	}
	return nil
}

// ask sends a request, with descriptors, and returns the answer with those that came with it. A process that does not
// answer is ended, and asked no more. mu is held.
func (s *starter) ask(request starterRequest, files ...*os.File) (reply starterReply, rights []*os.File, err error) {
	if err := s.begin(); err != nil {
		return reply, nil, err
	}
	if err = sendPacket(s.conn, request, files...); err == nil {
		rights, err = receivePacket(s.conn, &reply)
	}
	if err != nil {
		_ = s.cmd.Process.Kill()
		return reply, nil, fmt.Errorf("%w: %w", errNoStarter, errors.Join(err, s.end()))
	}
	return reply, rights, nil
}

// errNoStarter is the error of a start whose starter was gone, or went. An init may have been started all the same, and
// ends with the pipes that it was given.
var errNoStarter = errors.New("the starter does not answer")

// close ends the process. No init may be left to wait for.
func (s *starter) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.cmd == nil {
		return nil
	}
	return s.end()
}

// end lets go of the process and waits for its end. mu is held.
func (s *starter) end() error {
	s.conn.Close()
	cmd := s.cmd
	s.cmd, s.conn = nil, nil
	return waitRole(cmd)
}

func (*starter) explain(err error) error { return explain(err) }

// clonedInit is an init that the starter has cloned.
type clonedInit struct {
	starter *starter
	pid     int
	pidfd   *os.File
}

func (c *clonedInit) ready(group *cgroup, _ *os.File) error {
	if group == nil {
		return nil
	}
	return group.add(c.pid)
}

func (c *clonedInit) kill() { _ = killPidfd(c.pidfd) }

// wait takes the end of init for the end of all: it is a zombie only when every other process of its namespace was reaped.
func (c *clonedInit) wait() (string, error) {
	defer c.pidfd.Close()
	if err := waitPidfd(c.pidfd); err != nil {
		return "", err
	}
	return c.starter.reap(c.pid), nil
}

// starterMain is the starter's program; it returns at the end of its server.
func starterMain() {
	if err := enterRole(starterName); err != nil {
		os.Exit(1)
	}
	conn := os.NewFile(roleLifeline, "lifeline")
	inits := map[int]*os.Process{}
	for {
		var request starterRequest
		files, err := receivePacket(conn, &request)
		if err != nil {
			return // the server is gone
		}
		if err := sendAnswer(conn, request, files, inits); err != nil {
			return
		}
		closeAll(files...)
	}
}

func sendAnswer(conn *os.File, request starterRequest, files []*os.File, inits map[int]*os.Process) error {
	if request.Reap != 0 {
		return sendPacket(conn, starterReply{State: reapInit(inits, request.Reap)})
	}
	init, pidfd, err := cloneInit(Spec{UID: request.UID, GID: request.GID}, files)
	if err != nil {
		return sendPacket(conn, starterReply{Failed: newFailure(err)})
	}
	defer pidfd.Close()
	inits[init.Pid] = init
	return sendPacket(conn, starterReply{PID: init.Pid}, pidfd)
}

func reapInit(inits map[int]*os.Process, pid int) string {
	init := inits[pid]
	if init == nil {
		return starterGone
	}
	delete(inits, pid)
	state, err := init.Wait()
	if err != nil {
		return err.Error()
	}
	return state.String()
}

// cloneInit starts an init with files from the server: its ends of the pipes, and what is executed.
func cloneInit(spec Spec, files []*os.File) (init *os.Process, pidfd *os.File, err error) {
	if len(files) != numInitEnds+1 {
		return nil, nil, setupError("start init", "", fmt.Errorf("bug: %d descriptors", len(files)))
	}
	theirs, exe := pipesOf([numInitEnds]*os.File(files)), files[numInitEnds]
	withMonitorSlack(func() { init, err = startSealed(exe, "/", theirs, spec) })
	if err != nil {
		return nil, nil, cloneError(err, func() bool { return namespacesCanBeMade(exe, spec) })
	}
	fd, err := unix.PidfdOpen(init.Pid, 0)
	if err != nil {
		_ = init.Kill()
		_, _ = init.Wait()
		return nil, nil, setupError("open pidfd", "", err)
	}
	return init, os.NewFile(uintptr(fd), "init"), nil
}

// sendPacket writes a message with descriptors.
func sendPacket(conn *os.File, message any, files ...*os.File) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(int(conn.Fd()), body, rights, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR { //nolint:errorlint // never wrapped here
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// packets are what messages are read into, each used again.
var packets = sync.Pool{New: func() any { return new([maxStarterPacket]byte) }}

// receivePacket reads a message, and returns the descriptors that came with it. The error is io.EOF at the end of the stream.
func receivePacket(conn *os.File, message any) ([]*os.File, error) {
	body := packets.Get().(*[maxStarterPacket]byte)
	defer packets.Put(body)
	n, fds, err := receiveDescriptors(conn, body[:], numInitEnds+1)
	if err != nil {
		return nil, err
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "received")
	}
	d := json.NewDecoder(bytes.NewReader(body[:n]))
	d.DisallowUnknownFields()
	if err := d.Decode(message); err != nil {
		closeAll(files...)
		return nil, err
	}
	return files, nil
}
