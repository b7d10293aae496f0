package proxy

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func (r run) ask(t *testing.T, network, name string, kind dnsmessage.Type) dnsmessage.Message {
	t.Helper()
	query := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := query.Pack()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial(network, r.resolver)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	answer := make([]byte, 512)
	if network == "tcp" {
		_, _ = conn.Write(append([]byte{byte(len(packed) >> 8), byte(len(packed))}, packed...))
		if _, err := io.ReadFull(conn, answer[:2]); err != nil {
			t.Fatal(err)
		}
	} else {
		_, _ = conn.Write(packed)
	}
	n, err := conn.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(answer[:n]); err != nil {
		t.Fatal(err)
	}
	if m.ID != 7 || !m.Response || len(m.Questions) != 1 {
		t.Errorf("answer %v", m.GoString())
	}
	return m
}

func TestResolver(t *testing.T) {
	r := serve(t, Config{Mode: "allowlist", Allow: []string{"a.test", "*.b.test:5432"}}, nil)
	for _, tt := range []struct {
		network, name string
		kind          dnsmessage.Type
		code          dnsmessage.RCode
		answer        string
	}{
		{"udp", "a.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "198.18.1.0"},
		{"tcp", "A.Test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "198.18.1.0"},
		{"udp", "x.b.test.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, "198.18.1.1"},
		{"udp", "a.test.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, ""},
		{"udp", "a.test.", dnsmessage.TypeHTTPS, dnsmessage.RCodeSuccess, ""},
		{"udp", "b.test.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
		{"udp", "secret-data.evil.test.", dnsmessage.TypeTXT, dnsmessage.RCodeNameError, ""},
		{"udp", "0.1.18.198.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeSuccess, "a.test."},
		{"udp", "1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, ""},
		{"udp", "127.0.0.1.", dnsmessage.TypeA, dnsmessage.RCodeNameError, ""},
	} {
		m := r.ask(t, tt.network, tt.name, tt.kind)
		got := ""
		for _, a := range m.Answers {
			switch body := a.Body.(type) {
			case *dnsmessage.AResource:
				got = netip.AddrFrom4(body.A).String()
			case *dnsmessage.PTRResource:
				got = body.PTR.String()
			}
		}
		if m.RCode != tt.code || got != tt.answer {
			t.Errorf("%s %s: %v %q, want %v %q", tt.name, tt.kind, m.RCode, got, tt.code, tt.answer)
		}
	}
	r.wantDenied(t, "b.test not in network.allow", "secret-data.evil.test not in network.allow")
}
