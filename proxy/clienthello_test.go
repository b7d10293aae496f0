package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"
)

// hello is what a TLS client of Go's sends first.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	go func() {
		_ = client.SetDeadline(time.Now().Add(5 * time.Second))
		_ = tls.Client(client, config).Handshake() // it is cut off
	}()
	b := make([]byte, 8192)
	n, err := server.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// split makes the one record of b several, each with at most n bytes.
func split(b []byte, n int) []byte {
	var out []byte
	for message := b[recordHeaderSize:]; len(message) > 0; {
		part := message[:min(n, len(message))]
		out = append(out, b[0], b[1], b[2], byte(len(part)>>8), byte(len(part)))
		out = append(out, part...)
		message = message[len(part):]
	}
	return out
}

func TestServerName(t *testing.T) {
	named := hello(t, &tls.Config{ServerName: "a.test"})
	plain := hello(t, &tls.Config{InsecureSkipVerify: true})
	old := hello(t, &tls.Config{ServerName: "a.test", MaxVersion: tls.VersionTLS12})
	damaged := append([]byte(nil), named...)
	damaged[recordHeaderSize+4+2+32] = 0xff // the length of the session
	for name, tt := range map[string]struct {
		first []byte
		want  string
		err   error
	}{
		"named":           {named, "a.test", nil},
		"TLS 1.2":         {old, "a.test", nil},
		"in small pieces": {split(named, 7), "a.test", nil},
		"no name":         {plain, "", nil},
		"HTTP":            {[]byte("GET / HTTP/1.1\r\n"), "", nil},
		"SSH":             {[]byte("SSH-2.0-x\r\n"), "", nil},
		"nothing":         {nil, "", errIncomplete},
		"one byte":        {named[:1], "", errIncomplete},
		"half":            {named[:100], "", errIncomplete},
		"half in pieces":  {split(named, 50)[:200], "", errIncomplete},
		"22, not TLS":     {[]byte{22, 9, 9}, "", nil},
		"damaged":         {damaged, "", errNotHello},
		"empty record":    {append([]byte{22, 3, 1, 0, 0}, named...), "", errNotHello},
		"another message": {[]byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, "", errNotHello},
		"endless":         {[]byte{22, 3, 1, 0, 4, 1, 0xff, 0, 0}, "", errNotHello},
		"alert between":   {append(split(named, 50)[:55], 21, 3, 1, 0, 2, 1, 0), "", errNotHello},
	} {
		if got, err := serverName(tt.first); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, tt.want, tt.err)
		}
	}
}

// FuzzServerName: a reader of anything neither fails nor gives one name for the whole and another for its
// pieces.
func FuzzServerName(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "a.test"}), 9)
	f.Add([]byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, first []byte, n int) {
		want, err := serverName(first)
		if err != nil || want == "" || n < 1 {
			return
		}
		size := int(first[3])<<8 | int(first[4])
		if len(first) != recordHeaderSize+size {
			return
		}
		if got, err := serverName(split(first, n)); got != want || err != nil {
			t.Errorf("whole: %q; in pieces of %d: %q, %v", want, n, got, err)
		}
	})
}
