package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// SOCKS5, RFC 1928: CONNECT only, without authentication, since nobody but the run reaches this.
const (
	socksVersion = 5

	socksNoAuth       = 0
	socksNoMethod     = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	socksDone         = 0
	socksNotAllowed   = 2
	socksUnreachable  = 4
	socksRefused      = 5
	socksNoCommand    = 7
	socksNoAddressing = 8
)

// socks serves a connection whose first byte, the version, was read.
func (s *Session) socks(ctx context.Context, conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(headerTimeout))
	host, port, code, err := socksRequest(conn)
	if err != nil {
		if code != socksDone {
			socksReply(conn, code)
		}
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	server, err := s.dial(ctx, host, port)
	if err != nil {
		code := byte(socksUnreachable)
		if denied := new(DeniedError); errors.As(err, &denied) {
			code = socksNotAllowed
		} else if isRefused(err) {
			code = socksRefused
		}
		socksReply(conn, code)
		return
	}
	if socksReply(conn, socksDone) != nil {
		s.untrack(server)
		return
	}
	s.carry(conn, server, host, port)
}

// socksRequest reads what a client wants. With an error, code is what to answer, if anything.
func socksRequest(conn net.Conn) (host string, port int, code byte, err error) {
	var b [256]byte
	read := func(n int) []byte {
		if err == nil {
			_, err = io.ReadFull(conn, b[:n])
		}
		return b[:n]
	}
	methods := read(int(read(1)[0]))
	offered := false
	for _, m := range methods {
		offered = offered || m == socksNoAuth
	}
	if err != nil {
		return "", 0, socksDone, err
	}
	if !offered {
		_, _ = conn.Write([]byte{socksVersion, socksNoMethod})
		return "", 0, socksDone, errors.New("no method in common")
	}
	if _, err := conn.Write([]byte{socksVersion, socksNoAuth}); err != nil {
		return "", 0, socksDone, err
	}
	head := [4]byte(read(4))
	switch {
	case err != nil || head[0] != socksVersion:
		return "", 0, socksDone, errors.Join(err, errors.New("no SOCKS5 request"))
	case head[1] != socksConnect:
		return "", 0, socksNoCommand, errors.New("no CONNECT")
	}
	switch head[3] {
	case socksIPv4:
		host = netip.AddrFrom4([4]byte(read(4))).String()
	case socksIPv6:
		host = netip.AddrFrom16([16]byte(read(16))).String()
	case socksName:
		host = string(read(int(read(1)[0])))
	default:
		return "", 0, socksNoAddressing, errors.New("no such kind of address")
	}
	port = int(binary.BigEndian.Uint16(read(2)))
	return host, port, socksDone, err
}

func socksReply(conn net.Conn, code byte) error {
	// The address that the destination sees is none of the run's business.
	_, err := conn.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
	return err
}
