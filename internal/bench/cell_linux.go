package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cell is a network namespace as a run has it, without rules and without a sandbox, and a bare relay of the host's that takes
// what is opened in it: the least that any relay out of a namespace costs on this machine. The messages are
//
//	cell: descriptor 3 sends the listener, of the namespace's loopback
//	bench: starts the relay with it
//	bench → cell: "WHAT ADDRESS" a line on its standard input, as often as it likes
//	cell → bench: what the client said, a line on its standard output
type cell struct {
	in   interface{ Write([]byte) (int, error) }
	out  *bufio.Reader
	addr string
}

// startCell starts one whose connections are relayed to an address.
func startCell(ctx context.Context, self, to string) (c *cell, stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, cmd := range started {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "listener")
	defer theirs.Close()
	inside := exec.CommandContext(ctx, self, "cell", "")
	inside.ExtraFiles = []*os.File{theirs}
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	inside.Stderr = os.Stderr
	in, err := inside.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := inside.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := inside.Start(); err != nil {
		return nil, nil, err
	}
	started = append(started, inside)
	theirs.Close()
	listener, err := receiveFile(pair[0])
	if err != nil {
		return nil, nil, fmt.Errorf("the namespace sends no listener: %w", err)
	}
	defer listener.Close()
	outside := exec.CommandContext(ctx, self, "relay", to, "inherited")
	outside.ExtraFiles = []*os.File{listener}
	addr, err := outside.StdoutPipe()
	if err == nil {
		err = outside.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	started = append(started, outside)
	c = &cell{in: in, out: bufio.NewReader(out)}
	_, err = fmt.Fscanln(addr, &c.addr)
	return c, stop, err
}

// measure has a client do something in the namespace.
func (c *cell) measure(what string) (time.Duration, error) {
	if _, err := fmt.Fprintln(c.in, what, c.addr); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	return tookOf(line, err)
}

func receiveFile(socket int) (*os.File, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "listener"), nil
}

// inCell is what runs in the namespace.
func inCell([]string) error {
	if err := raiseLoopback(); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno"), 0); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0); err != nil {
		return err
	}
	f.Close()
	l.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		out, err := exec.Command(self, append([]string{"client"}, strings.Fields(lines.Text())...)...).CombinedOutput()
		if err != nil {
			out = fmt.Appendf(nil, "%v: %q", err, out)
		}
		fmt.Println(strings.TrimSpace(string(out)))
	}
	return lines.Err()
}

func raiseLoopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, req)
}

// unpaced makes connections to loopback as airlock's are.
func unpaced(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) { _ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") })
}
