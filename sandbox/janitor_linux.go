package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// janitorLifeline is the janitor's end of the socket.
const janitorLifeline = 3

// janitorOrder is the one message that the janitor gets: what it will have to remove.
type janitorOrder struct {
	Prefix string   `json:"prefix"` // of the names of the server's cgroups
	Bases  []string `json:"bases"`  // the directories that they are made in
}

// maxJanitorOrder bounds the message, in bytes.
const maxJanitorOrder = 64 << 10

// janitor removes the cgroups of this server if it cannot do that itself any more, because it was killed.
// Processes and mounts of a run end with its init; a cgroup is a directory, and stays.
//
// It is a process of its own, in its own session so that no terminal's signal ends it with the server,
// with nothing inherited but one end of a socket pair. The other end is held by the server alone: its end
// of file is the server's death, however that came.
//
//	server                          janitor
//	  | -- janitorOrder ------------> |  written before the start; then it waits
//	  | ~~ end of file ~~~~~~~~~~~~~> |  kills, waits, removes; two seconds at most
//	  | <---- exits ----------------- |
type janitor struct {
	cmd      *exec.Cmd
	lifeline *os.File
	bases    []string
}

// startJanitor starts the janitor from exe, an open executable file of this program (the sealed copy). It
// returns nil, nil where no cgroups can be made; a nil janitor may be closed.
func startJanitor(exe *os.File) (*janitor, error) {
	hs, _ := findHierarchies([]string{controllerPids, controllerMemory, controllerCPU})
	if len(hs) == 0 {
		return nil, nil
	}
	self, err := selfStamp()
	if err != nil {
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	order := janitorOrder{Prefix: self.prefix()}
	for _, h := range hs {
		order.Bases = append(order.Bases, h.base)
	}
	message, err := json.Marshal(order)
	if err != nil {
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	// The order is one packet, so that the janitor never acts on half of one.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	theirs := os.NewFile(uintptr(pair[1]), "lifeline")
	defer theirs.Close()
	j := &janitor{lifeline: os.NewFile(uintptr(pair[0]), "lifeline"), bases: order.Bases}
	if _, err := j.lifeline.Write(message); err != nil {
		j.lifeline.Close()
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	j.cmd = &exec.Cmd{
		Path:        fmt.Sprintf("/proc/self/fd/%d", exe.Fd()),
		Args:        []string{janitorName},
		Env:         []string{},
		Dir:         "/", // a working directory would keep the workspace's file system busy
		ExtraFiles:  []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := j.cmd.Start(); err != nil {
		j.lifeline.Close()
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	return j, nil
}

// close ends the janitor and waits for it. No cgroup of a run may be in use. If the server had moved to a
// leaf of its own cgroup, it is back afterwards.
func (j *janitor) close() error {
	if j == nil {
		return nil
	}
	var errs []error
	if leaf, ok := ownLeaf(j.bases); ok {
		errs = append(errs, leaveLeaf(leaf))
	}
	j.lifeline.Close()
	// It needs removeTimeout at most; if it hangs nevertheless, the caller must not.
	late := time.AfterFunc(2*removeTimeout, func() { _ = j.cmd.Process.Kill() })
	defer late.Stop()
	if err := j.cmd.Wait(); err != nil {
		errs = append(errs, fmt.Errorf("janitor: %w", err))
	}
	return errors.Join(errs...)
}

// janitorMain is the janitor's program; it does not return.
func janitorMain() {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	if err := closeInherited(janitorLifeline); err != nil {
		os.Exit(1)
	}
	order, err := receiveOrder(janitorLifeline)
	if err != nil {
		os.Exit(1)
	}
	waitForEnd(janitorLifeline)

	status := 0
	deadline := time.Now().Add(removeTimeout)
	for _, base := range order.Bases {
		if err := removeServerCgroups(base, order.Prefix, deadline); err != nil {
			status = 1
		}
	}
	if leaf, ok := ownLeaf(order.Bases); ok {
		if err := leaveLeaf(leaf); err != nil {
			status = 1
		}
	}
	os.Exit(status)
}

// receiveOrder reads the order. One whose prefix is not that of a server is refused: with an empty prefix
// everything in the bases would be removed.
func receiveOrder(fd int) (janitorOrder, error) {
	buf := make([]byte, maxJanitorOrder)
	n, err := readPacket(fd, buf)
	if err != nil {
		return janitorOrder{}, err
	}
	var order janitorOrder
	d := json.NewDecoder(bytes.NewReader(buf[:n]))
	d.DisallowUnknownFields()
	if err := d.Decode(&order); err != nil {
		return janitorOrder{}, err
	}
	if s, ok := parseStamp(order.Prefix); !ok || order.Prefix != s.prefix() {
		return janitorOrder{}, fmt.Errorf("%q is not the prefix of a server", order.Prefix)
	}
	return order, nil
}

// waitForEnd returns when the other end of the socket is closed.
func waitForEnd(fd int) {
	buf := make([]byte, 16)
	for {
		if n, err := readPacket(fd, buf); n == 0 || err != nil {
			return
		}
	}
}

func readPacket(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// ownLeaf finds the leaf of a server that this process lives in, below one of bases.
func ownLeaf(bases []string) (string, bool) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", false
	}
	for _, m := range parseMemberships(string(self)) {
		name := filepath.Base(m.path)
		if m.version() != 2 || !isServerLeaf(name) {
			continue
		}
		for _, base := range bases {
			leaf := filepath.Join(base, name)
			pids, err := cgroupPids(leaf)
			if err == nil && slices.Contains(pids, os.Getpid()) {
				return leaf, true
			}
		}
	}
	return "", false
}
