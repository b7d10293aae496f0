package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// The resolver of a run answers by itself: a name that the policy knows has a stand-in, every other one
// does not exist. No query ever leaves the host.

const (
	// answerTTL is in seconds. Stand-ins hold as long as the run.
	answerTTL = 60
	// maxQuery is the largest query that is read, in bytes; a question takes 12 + 255 + 4.
	maxQuery = 4096
	// queryIdle is how long a TCP connection of the resolver may be silent.
	queryIdle = 10 * time.Second
)

// answerUDP answers queries until the socket is closed.
func (s *Session) answerUDP(conn net.PacketConn) {
	buffer := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			if s.ended() || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(retryDelay)
			continue
		}
		if answer := s.answer(buffer[:n]); answer != nil {
			_, _ = conn.WriteTo(answer, from) // a run that is gone needs none
		}
	}
}

// answerTCP answers the queries of one connection.
func (s *Session) answerTCP(_ context.Context, conn net.Conn) {
	for {
		_ = conn.SetDeadline(time.Now().Add(queryIdle))
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		answer := s.answer(query)
		if answer == nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer makes the answer to a query; nil if it is none.
func (s *Session) answer(query []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil || header.Response {
		return nil
	}
	question, err := p.Question()
	reply := dnsmessage.Header{
		ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true,
	}
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, nil)
	}
	if header.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return build(reply, &question, nil)
	}
	var answer dnsmessage.ResourceBody
	reply.RCode, answer = s.resolve(question)
	return build(reply, &question, answer)
}

// resolve gives the code and, perhaps, the answer to a question.
func (s *Session) resolve(q dnsmessage.Question) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	if q.Class != dnsmessage.ClassINET {
		return dnsmessage.RCodeRefused, nil
	}
	host, err := CanonicalHost(q.Name.String())
	if err != nil {
		return dnsmessage.RCodeNameError, nil
	}
	if q.Type == dnsmessage.TypePTR {
		return s.reverse(host)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return dnsmessage.RCodeNameError, nil // an address is not asked for
	}
	if !s.gateway.policy.Knows(host) {
		if !strings.HasSuffix(host, ".arpa") && q.Type != dnsmessage.TypeNS && q.Type != dnsmessage.TypeSOA {
			s.denials.note(&DeniedError{Host: host, Reason: s.unknown(host)})
		}
		return dnsmessage.RCodeNameError, nil
	}
	if q.Type != dnsmessage.TypeA {
		return dnsmessage.RCodeSuccess, nil
	}
	addr, ok := s.names.standIn(host)
	if !ok {
		return dnsmessage.RCodeServerFailure, nil
	}
	s.listenAt(host, addr)
	return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: addr.As4()}
}

// unknown says why a name does not exist for a run.
func (s *Session) unknown(host string) string {
	if v := s.gateway.policy.Decide(host, 443); !v.Allow {
		return v.Reason
	}
	return reasonNotListed
}

// reverse answers what the name of a stand-in is.
func (s *Session) reverse(host string) (dnsmessage.RCode, dnsmessage.ResourceBody) {
	digits, ok := strings.CutSuffix(host, ".in-addr.arpa")
	if !ok {
		return dnsmessage.RCodeNameError, nil
	}
	parts := strings.Split(digits, ".")
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	addr, err := netip.ParseAddr(strings.Join(parts, "."))
	if err != nil {
		return dnsmessage.RCodeNameError, nil
	}
	name, ok := s.names.name(addr)
	if !ok {
		return dnsmessage.RCodeNameError, nil
	}
	ptr, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return dnsmessage.RCodeNameError, nil
	}
	return dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: ptr}
}

// build packs an answer. question and answer may be nil.
func build(header dnsmessage.Header, question *dnsmessage.Question, answer dnsmessage.ResourceBody) []byte {
	m := dnsmessage.Message{Header: header}
	if question != nil {
		m.Questions = []dnsmessage.Question{*question}
	}
	if answer != nil {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: answerTTL},
			Body:   answer,
		}}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil // nothing that was parsed is too large to be packed again
	}
	return packed
}
