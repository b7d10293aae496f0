package proxy

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Each direction ends by itself, and every byte arrives, both ways at once.
func TestRelayBytes(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const size = 20 << 20
	sent := make([]byte, size)
	_, _ = rand.Read(sent)
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() { // answers only after the client has ended its direction
				defer conn.Close()
				h := sha256.New()
				_, _ = io.Copy(h, conn)
				_, _ = io.WriteString(conn, hex.EncodeToString(h.Sum(nil)))
				_, _ = conn.Write(sent)
			}()
		}
	}()
	sum := sha256.Sum256(sent)
	want := hex.EncodeToString(sum[:]) + string(sent)
	before := runtime.NumGoroutine()
	r := serve(t, local("a.test"), nil)
	conn, err := net.Dial("tcp", r.proxy)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "CONNECT a.test:%d HTTP/1.1\r\nHost: x\r\n\r\n", server.Addr().(*net.TCPAddr).Port)
	in := bufio.NewReader(conn)
	if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(in)
	if err != nil || string(got) != want {
		t.Errorf("%d bytes of %d arrived as they were sent: %t, %v", len(got), len(want), string(got) == want, err)
	}
	conn.Close()
	r.Close()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines are left, %d were there before", n, before)
	}
}

// What a destination broke off does not look as if it had come to a good end, also for a client that sent its first
// bytes together with its CONNECT.
func TestRelayBrokenOff(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.ReadFull(conn, make([]byte, 5))
				_, _ = io.WriteString(conn, "half of it")
				// The client has that before the rest of it is broken off.
				_, _ = io.ReadFull(conn, make([]byte, 1))
				reset(conn)
			}()
		}
	}()
	r := serve(t, local("a.test"), nil)
	for _, early := range []bool{false, true} {
		conn, err := net.Dial("tcp", r.proxy)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		connect := fmt.Sprintf("CONNECT a.test:%d HTTP/1.1\r\nHost: x\r\n\r\n", server.Addr().(*net.TCPAddr).Port)
		in := bufio.NewReader(conn)
		if early {
			_, _ = io.WriteString(conn, connect+"hello")
		} else {
			_, _ = io.WriteString(conn, connect)
		}
		if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != 200 {
			t.Fatal(response, err)
		}
		if !early {
			_, _ = io.WriteString(conn, "hello")
		}
		half := make([]byte, 10)
		if _, err := io.ReadFull(in, half); err != nil || string(half) != "half of it" {
			t.Fatalf("%q, %v", half, err)
		}
		_, _ = io.WriteString(conn, "!")
		if n, err := in.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("first bytes together with CONNECT: %v: read %d, %v; want a reset", early, n, err)
		}
	}
}
