package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// egressClient is a Go program of the tests of the way out: what a run of theirs executes. It uses nothing of airlock.
func egressClient() {
	if len(os.Args) > 2 {
		var err error
		switch os.Args[1] {
		case "get":
			err = egressGet(os.Args[2], os.Args[3:])
		case "move":
			err = egressMove(os.Args[2:])
		default:
			err = errors.New("get or move")
		}
		if err == nil {
			return
		}
		fmt.Fprintln(os.Stderr, "egress-client:", err)
	}
	os.Exit(1)
}

// egressGet prints what is at each address, or that there is nothing.
func egressGet(authority string, addresses []string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	client := http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}}
	for _, address := range addresses {
		response, err := client.Get(address)
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		_, err = io.Copy(os.Stdout, response.Body)
		response.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// egressMove opens connections to a [farSide], has all of them move bytes at once, and counts the equal results:
//
//	down    the sum of what came; the connection's end ends it
//	up      what the far side says that it got; the end of our direction ends it
//	hold    no bytes: each connection is open when the last one has been opened
//	endless bytes that come until something ends the connection
func egressMove(args []string) error {
	flags := flag.NewFlagSet("move", flag.ContinueOnError)
	by := flags.String("by", "", "the HTTP proxy to ask, host:port")
	connections := flags.Int("n", 1, "how many connections")
	size := flags.Int64("size", 0, "how many bytes each of them moves")
	if err := flags.Parse(args); err != nil {
		return err
	}
	what, addr := flags.Arg(0), flags.Arg(1)
	results := make([]string, *connections)
	var opened, done sync.WaitGroup
	opened.Add(len(results)) // at once: the first may be open before the second has been begun
	for i := range results {
		done.Go(func() {
			conn, in, err := egressDial(*by, addr)
			if err == nil {
				defer conn.Close()
				_, err = fmt.Fprintln(conn, what, *size)
			}
			if err == nil && what == "hold" {
				results[i], err = in.ReadString('\n')
			}
			opened.Done()
			if err == nil && what == "hold" {
				opened.Wait()
			} else if err == nil {
				results[i], err = egressBytes(conn, in, what, *size)
			}
			if err != nil {
				results[i] = err.Error()
			}
		})
	}
	done.Wait()
	counts := map[string]int{}
	for _, r := range results {
		counts[r]++
	}
	for r, n := range counts {
		fmt.Println(n, "times", strings.TrimSpace(r))
	}
	return nil
}

// egressDial connects, by a proxy if there is one.
func egressDial(proxy, addr string) (*net.TCPConn, *bufio.Reader, error) {
	at := addr
	if proxy != "" {
		at = proxy
	}
	conn, err := net.Dial("tcp", at)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(conn)
	if proxy != "" {
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr)
		if response, err := http.ReadResponse(in, nil); err != nil || response.StatusCode != http.StatusOK {
			return nil, nil, fmt.Errorf("CONNECT: %v, %w", response, err)
		}
	}
	return conn.(*net.TCPConn), in, nil
}

func egressBytes(conn *net.TCPConn, in *bufio.Reader, what string, size int64) (string, error) {
	if what == "up" {
		if _, err := io.CopyN(conn, egressStream(), size); err != nil {
			return "", err
		}
		if err := conn.CloseWrite(); err != nil {
			return "", err
		}
		return in.ReadString('\n')
	}
	return egressSum(in)
}

// egressStream is an endless stream of bytes, the same on both sides.
func egressStream() io.Reader { return rand.NewChaCha8([32]byte{}) }

// egressSum says what a stream held.
func egressSum(r io.Reader) (string, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return fmt.Sprintf("%d bytes %x\n", n, sum.Sum(nil)), err
}
