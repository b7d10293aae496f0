package sandbox

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Where the kernel can't redirect a run's connections, they are taken where they go to: in the run's namespace every
// address is its own (addDefaultRoute), so that a socket can listen at any. Only a process of the namespace can make
// one, and init is the only one that is trusted. So it keeps its end of the egress's socket, and for each address and
// port that the server asks for, 18 bytes, it answers with one byte, the number of an error or 0 and the socket with it.
//
//	server                                init
//	  │ ── address (16 bytes), port (2) ──▶ │  opens, binds, listens
//	  │ ◀─ 0 and a descriptor, or errno ─── │  keeps nothing
//
// Nobody but the server speaks to it there: the payload never holds a descriptor of this socket.

// listenRequestSize is the size of what the server asks, in bytes.
const listenRequestSize = 16 + 2

// listenTime bounds what the server waits for an answer, which takes init some 0.1 ms.
const listenTime = 5 * time.Second

// openListeners is init's side, until the server closes its own.
func openListeners() {
	server := os.NewFile(egressFD, "egress")
	defer server.Close()
	var b [listenRequestSize]byte
	for {
		if _, err := io.ReadFull(server, b[:]); err != nil {
			return
		}
		addr := netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[16:]))
		var rights []byte
		fd, err := openSocket(unix.SOCK_STREAM, addr)
		answer := byte(0)
		if err != nil {
			answer = byte(errnoOf(err))
		} else {
			rights = unix.UnixRights(fd)
		}
		failed := unix.Sendmsg(egressFD, []byte{answer}, rights, nil, 0)
		if err == nil {
			unix.Close(fd)
		}
		if failed != nil {
			return
		}
	}
}

// listenersOf is the server's side.
type listenersOf struct {
	mu   sync.Mutex // one question at a time
	init *os.File
}

// listen is [Sockets].Listen.
func (l *listenersOf) listen(at netip.AddrPort) (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.init.SetDeadline(time.Now().Add(listenTime))
	address := at.Addr().As16()
	if _, err := l.init.Write(binary.BigEndian.AppendUint16(address[:], at.Port())); err != nil {
		return nil, err
	}
	var answer [1]byte
	_, fds, err := receiveDescriptors(l.init, answer[:], 1)
	if err != nil {
		// The answer may still come, and would be taken for another question's.
		return nil, errors.Join(err, l.init.Close())
	}
	switch {
	case answer[0] != 0:
		return nil, os.NewSyscallError("listen", unix.Errno(answer[0]))
	case len(fds) != 1:
		return nil, errors.New("bug: init answered without a socket")
	}
	f := os.NewFile(uintptr(fds[0]), "egress")
	defer f.Close() // package net works on a copy
	return net.FileListener(f)
}
