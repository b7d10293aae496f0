package proxy

import (
	"crypto/tls"
	"errors"
	"io"
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
		"named":             {named, "a.test", nil},
		"TLS 1.2":           {old, "a.test", nil},
		"in small pieces":   {split(named, 7), "a.test", nil},
		"no name":           {plain, "", nil},
		"HTTP":              {[]byte("GET / HTTP/1.1\r\n"), "", nil},
		"SSH":               {[]byte("SSH-2.0-x\r\n"), "", nil},
		"nothing":           {nil, "", errIncomplete},
		"one byte":          {named[:1], "", errIncomplete},
		"half":              {named[:100], "", errIncomplete},
		"half in pieces":    {split(named, 50)[:200], "", errIncomplete},
		"22, not TLS":       {[]byte{22, 16, 9}, "", nil},
		"22, length of 278": {[]byte{22, 1, 0, 0, 7, 0, 0, 0}, "", nil}, // MongoDB
		"21, length of 277": {[]byte{21, 1, 0, 0, 2, 0, 0, 0}, "", nil},
		"half a warning":    {[]byte{21, 3, 1, 0, 2}, "", errIncomplete},
		"version 2.3":       {append([]byte{22, 2, 3}, named[3:]...), "", errNotHello},
		"warning first":     {append([]byte{21, 3, 1, 0, 2, 1, 90}, named...), "", errNotHello},
		"cipher first":      {append([]byte{20, 3, 3, 0, 1, 1}, named...), "", errNotHello},
		"damaged":           {damaged, "", errNotHello},
		"empty record":      {append([]byte{22, 3, 1, 0, 0}, named...), "", errNotHello},
		"another message":   {[]byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, "", errNotHello},
		"endless":           {[]byte{22, 3, 1, 0, 4, 1, 0xff, 0, 0}, "", errNotHello},
		"alert between":     {append(split(named, 50)[:55], 21, 3, 1, 0, 2, 1, 0), "", errNotHello},
	} {
		if got, err := serverName(tt.first); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q, %v; want %q, %v", name, got, err, tt.want, tt.err)
		}
	}
}

// What a server takes for the name of a client is what was judged, however the client wraps it.
func TestServerNameIsTheServers(t *testing.T) {
	named := hello(t, &tls.Config{ServerName: "a.test"})
	warning := []byte{21, 3, 1, 0, 2, 1, 90} // user_canceled: servers go on
	for name, first := range map[string][]byte{
		"plain":            named,
		"in pieces":        split(named, 7),
		"version 2.3":      append([]byte{22, 2, 3}, named[3:]...),
		"version 9.9":      append([]byte{22, 9, 9}, named[3:]...),
		"a warning before": append(warning[:7:7], named...),
		"two before":       append(append(warning[:7:7], warning...), named...),
		"cipher first":     append([]byte{20, 3, 3, 0, 1, 1}, named...),
		"empty before":     append([]byte{22, 3, 1, 0, 0}, named...),
	} {
		judged, err := serverName(first)
		taken := nameTaken(first)
		if name == "plain" && taken != "a.test" {
			t.Fatalf("the server takes %q", taken)
		}
		if err == nil && taken != "" && judged != taken {
			t.Errorf("%s: judged %q, and the server takes %q", name, judged, taken)
		}
	}
}

// nameTaken is the name that a server of Go's has from the first bytes of a client, or "".
func nameTaken(first []byte) (name string) {
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		_ = client.SetDeadline(time.Now().Add(time.Second))
		_, _ = client.Write(first)
		_, _ = io.Copy(io.Discard, client)
	}()
	_ = server.SetDeadline(time.Now().Add(time.Second))
	_ = tls.Server(server, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = h.ServerName
		return nil, errors.New("that was all")
	}}).Handshake() // it is cut off
	server.Close()
	return name
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
