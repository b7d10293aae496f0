package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

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
// It is a process of its own (roles_linux.go).
//
//	server                          janitor
//	  | -- janitorOrder ------------> |  one packet, so that it never acts on half of one; then it waits
//	  | ~~ end of file ~~~~~~~~~~~~~> |  kills, waits, removes; two seconds at most
//	  | <---- exits ----------------- |
//
// A server that ends in order has removed its cgroups itself, and dismisses the janitor with one more
// packet. It would else remove those of another backend in the same process.
type janitor struct {
	cmd      *exec.Cmd
	lifeline *os.File
}

// dismissal is the packet that sends the janitor home.
const dismissal = "done"

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
	j := new(janitor)
	if j.cmd, j.lifeline, err = startRole(exe, janitorName); err != nil {
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	if _, err := j.lifeline.Write(message); err != nil {
		j.lifeline.Close()
		_ = waitRole(j.cmd)
		return nil, &SetupError{Op: "start the janitor", Err: err}
	}
	return j, nil
}

// close dismisses the janitor and waits for it. No cgroup of this backend's runs may be in use. If the
// server had moved to a leaf of its own cgroup, it is back afterwards.
func (j *janitor) close() error {
	var errs []error
	if self, err := selfStamp(); err == nil {
		errs = append(errs, leaveOwnLeaf(self.prefix()))
	}
	if j == nil {
		return errors.Join(errs...)
	}
	_, _ = j.lifeline.WriteString(dismissal) // EPIPE: it is gone, and Wait says how
	j.lifeline.Close()
	if err := waitRole(j.cmd); err != nil {
		errs = append(errs, fmt.Errorf("janitor: %w", err))
	}
	return errors.Join(errs...)
}

// janitorMain is the janitor's program; it does not return.
func janitorMain() {
	if err := enterRole(janitorName); err != nil {
		os.Exit(1)
	}
	order, err := receiveOrder(roleLifeline)
	if err != nil {
		os.Exit(1)
	}
	if dismissed(roleLifeline) {
		_ = leaveOwnLeaf(order.Prefix) // as the server did
		os.Exit(0)
	}
	status := 0
	deadline := time.Now().Add(removeTimeout)
	for _, base := range order.Bases {
		if err := removeServerCgroups(base, order.Prefix, deadline); err != nil {
			status = 1
		}
	}
	if err := leaveOwnLeaf(order.Prefix); err != nil {
		status = 1
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

// dismissed waits, and returns true if the server has no more need of the janitor, false if it is dead.
func dismissed(fd int) bool {
	buf := make([]byte, 16)
	n, err := readPacket(fd, buf)
	return err == nil && string(buf[:n]) == dismissal
}

func readPacket(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
