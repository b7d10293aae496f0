package proxy

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// counted counts what is written.
type counted struct {
	io.Writer
	n atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// A side that does not read makes the other one wait: what is held for the run is what the kernel's sockets hold, and nothing
// grows here. When it reads at last, all of it has arrived.
func TestSlowReaderSlowsItsWriter(t *testing.T) {
	const (
		size = 128 << 20
		most = 100 << 20 // in sockets, whose buffers a kernel can be told to let grow to tens of megabytes
		heap = 8 << 20
	)
	stream := func() io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{1}), size) }
	sum := sha256.New()
	if _, err := io.Copy(sum, stream()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%x", sum.Sum(nil))
	for _, tt := range []struct{ name, request string }{
		{"down, CONNECT", "CONNECT a.test:%d HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"up, CONNECT", "CONNECT a.test:%d HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"down, http", "GET http://a.test:%d/ HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			far, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			accepted := make(chan net.Conn, 1)
			go func() {
				if conn, err := far.Accept(); err == nil {
					accepted <- conn
				}
			}()
			r := serve(t, local("a.test"), nil)
			client, err := net.Dial("tcp", r.proxy)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_ = client.SetDeadline(time.Now().Add(3 * time.Minute))
			fmt.Fprintf(client, tt.request, far.Addr().(*net.TCPAddr).Port)
			server := <-accepted
			defer server.Close()
			var writer, reader net.Conn = server, client
			var from io.Reader
			if tt.name == "down, http" {
				if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(server, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
			}
			in := bufio.NewReaderSize(client, 512)
			response, err := http.ReadResponse(in, nil)
			if err != nil || response.StatusCode != 200 {
				t.Fatal(response, err)
			}
			from = in
			if tt.name == "up, CONNECT" {
				writer, reader, from = client, server, server
			}
			before := heapNow()
			sent := &counted{Writer: writer}
			written := make(chan error, 1)
			go func() {
				_, err := io.CopyBuffer(struct{ io.Writer }{sent}, stream(), make([]byte, 64<<10))
				_ = writer.(*net.TCPConn).CloseWrite()
				written <- err
			}()
			for last, end := int64(-1), time.Now().Add(time.Minute); sent.n.Load() != last && time.Now().Before(end); {
				last = sent.n.Load()
				time.Sleep(time.Second)
			}
			if n := sent.n.Load(); n == 0 || n > most {
				t.Errorf("%d MiB were taken of a writer whose reader does not read", n>>20)
			}
			if more := heapNow() - before; more > heap {
				t.Errorf("%d KiB are held here", more>>10)
			}
			t.Logf("%d KiB on their way", sent.n.Load()>>10)
			sum := sha256.New()
			n, err := io.CopyN(sum, from, size)
			if got := fmt.Sprintf("%x", sum.Sum(nil)); err != nil || got != want {
				t.Errorf("%d bytes arrived, as they were sent: %t, %v", n, got == want, err)
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			reader.Close()
		})
	}
}

// heapNow is what is in use of the heap, in bytes.
func heapNow() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
