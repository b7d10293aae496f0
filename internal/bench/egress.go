package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	egressRounds  = 11
	egressBytes   = 256 << 20
	egressConnect = 200 // connections in a row
)

// egress compares how fast bytes move and connections open: directly, by a process of the host's that judges nothing
// and does nothing but relay, by another that takes its connections from a network namespace, by an HTTP proxy (tinyproxy), and from a run, both by the redirect, which no program knows of,
// and by the run's proxy. Both ends and all that is between them share the machine's processors.
func (b bench) egress(ctx context.Context, dir string) error {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer far.Close()
	go answer(far)
	port := far.Addr().(*net.TCPAddr).Port
	s, err := startServer(ctx, b.airlock, dir, fmt.Sprintf(`[network]
mode = "allowlist"
allow = ["far.test:%d"]
private = ["127.0.0.1/32"]
resolve = {"far.test" = "127.0.0.1"}
`, port))
	if err != nil {
		return err
	}
	defer s.close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.workspace, "bench"), program, 0o755); err != nil {
		return err
	}
	tinyproxy, stop, notRun := startTinyproxy(ctx, dir)
	defer stop()
	relay, stopRelay, err := startRelay(ctx, self, far.Addr().String())
	if err != nil {
		return err
	}
	defer stopRelay()
	cell, stopCell, err := startCell(ctx, self, far.Addr().String())
	if err != nil {
		return err
	}
	defer stopCell()

	for _, what := range []struct{ name, command string }{
		{fmt.Sprintf("%d MiB down", egressBytes>>20), "down"},
		{fmt.Sprintf("%d MiB up", egressBytes>>20), "up"},
		{fmt.Sprintf("A connection, with a byte each way: the median of %d, one after the other", egressConnect), "connect"},
	} {
		onHost := func(addr, proxy string) func() (time.Duration, error) {
			return func() (time.Duration, error) {
				out, err := exec.CommandContext(ctx, self, "client", what.command, addr, proxy).CombinedOutput()
				return tookOf(string(out), err)
			}
		}
		inRun := func(proxy string) func() (time.Duration, error) {
			return func() (time.Duration, error) {
				r, err := s.client.CallTool(ctx, "run_shell", map[string]any{
					"command": fmt.Sprintf("./bench client %s far.test:%d %s", what.command, port, proxy),
				}, nil)
				return tookOf(r.Text, err)
			}
		}
		ways := []*way{
			{name: "direct", measure: onHost(far.Addr().String(), "")},
			{name: "by a bare relay", measure: onHost(relay, "")},
			{name: "out of a namespace, by a bare relay", measure: func() (time.Duration, error) { return cell.measure(what.command) }},
			{name: "by tinyproxy", measure: onHost(far.Addr().String(), tinyproxy), notRun: notRun},
			{name: "from a run, redirected", measure: inRun("")},
			{name: "from a run, by its proxy (CONNECT)", measure: inRun("${http_proxy#http://}")},
		}
		if err := b.takeInTurn(egressRounds, ways); err != nil {
			return err
		}
		fmt.Print(table(fmt.Sprintf("%s (%d rounds)", what.name, b.rounds(egressRounds)), ways))
	}
	return nil
}

// answer serves what [client] asks for.
func answer(far net.Listener) {
	for {
		conn, err := far.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			what := make([]byte, 1)
			if _, err := io.ReadFull(conn, what); err != nil {
				return
			}
			switch what[0] {
			case 'd':
				_ = sendBytes(conn)
			case 'u':
				// tinyproxy takes the end of a direction for that of both, so that it is counted here.
				if discard(conn, egressBytes) == nil {
					_, _ = conn.Write(what)
				}
			default:
				_, _ = conn.Write(what)
			}
		}()
	}
}

// chunk is large enough for the calls to the system to cost little.
var chunk = make([]byte, 256<<10)

func sendBytes(w io.Writer) error {
	for range egressBytes / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// discard reads so many bytes through a buffer: nothing is moved within the kernel.
func discard(conn io.Reader, bytes int) error {
	buffer := make([]byte, len(chunk))
	for bytes > 0 {
		n, err := conn.Read(buffer)
		if err != nil {
			return err
		}
		bytes -= n
	}
	return nil
}

// client is the side that is measured: client WHAT ADDRESS [PROXY]. It prints how long one connection took.
func client(args []string) error {
	what, addr, proxy := args[0], args[1], ""
	if len(args) > 2 {
		proxy = args[2]
	}
	count := 1
	if what == "connect" {
		count = egressConnect
	}
	var times []time.Duration
	for range count {
		start := time.Now()
		if err := clientOnce(what, addr, proxy); err != nil {
			return err
		}
		times = append(times, time.Since(start))
	}
	fmt.Println("took", median(times).Nanoseconds(), "ns")
	return nil
}

func clientOnce(what, addr, proxy string) error {
	at := addr
	if proxy != "" {
		at = proxy
	}
	conn, err := net.Dial("tcp", at)
	if err != nil {
		return err
	}
	defer conn.Close()
	if proxy != "" {
		if err := connect(conn, addr); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte(what[:1])); err != nil {
		return err
	}
	switch what {
	case "down":
		return discard(conn, egressBytes)
	case "up":
		if err := sendBytes(conn); err != nil {
			return err
		}
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// connect asks a proxy for a tunnel. What comes of the far side comes only once it was asked, so that no byte of it is
// read here.
func connect(conn net.Conn, addr string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", addr, addr); err != nil {
		return err
	}
	answer := make([]byte, 0, 4096)
	for !strings.HasSuffix(string(answer), "\r\n\r\n") && len(answer) < cap(answer) {
		n, err := conn.Read(answer[len(answer):cap(answer)])
		if err != nil {
			return err
		}
		answer = answer[:len(answer)+n]
	}
	if !strings.Contains(string(answer[:min(len(answer), 16)]), " 200 ") {
		return fmt.Errorf("the proxy answers %.100q", answer)
	}
	return nil
}

var tookLine = regexp.MustCompile(`(?m)^took (\d+) ns$`)

// tookOf finds what a client printed.
func tookOf(output string, err error) (time.Duration, error) {
	if err != nil {
		return 0, fmt.Errorf("%w: %.300s", err, output)
	}
	m := tookLine.FindStringSubmatch(output)
	if m == nil {
		return 0, fmt.Errorf("the client says %.300q", output)
	}
	ns, err := strconv.ParseInt(m[1], 10, 64)
	return time.Duration(ns), err
}

// relay passes each connection on to an address, and does nothing else: relay ADDRESS [inherited]. It prints its own address.
// Its listener may be descriptor 3, of another namespace, and then its connections to this host are as airlock's are.
func relay(args []string) error {
	var dialer net.Dialer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if len(args) > 1 {
		dialer.Control = unpaced
		l, err = net.FileListener(os.NewFile(3, "listener"))
	}
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			server, err := dialer.Dial("tcp", args[0])
			if err != nil {
				client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(client, server)
			client.Close()
			server.Close()
		}()
	}
}

func startRelay(ctx context.Context, self, to string) (addr string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, self, "relay", to)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		stop()
		return "", nil, fmt.Errorf("the relay does not begin: %w", err)
	}
	return addr, stop, nil
}

// startTinyproxy starts one and returns its address, or says why there is none.
func startTinyproxy(ctx context.Context, dir string) (addr string, stop func(), notRun string) {
	stop = func() {}
	path, err := exec.LookPath("tinyproxy")
	if err != nil {
		return "", stop, "tinyproxy is not installed"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", stop, err.Error()
	}
	addr = l.Addr().String()
	l.Close() // it can't take a listener over
	config := filepath.Join(dir, "tinyproxy.conf")
	text := fmt.Sprintf("Listen 127.0.0.1\nPort %s\nAllow 127.0.0.1\nMaxClients 50\nLogLevel Critical\n", addr[strings.LastIndexByte(addr, ':')+1:])
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return "", stop, err.Error()
	}
	cmd := exec.Command(path, "-d", "-c", config)
	if err := cmd.Start(); err != nil {
		return "", stop, err.Error()
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			return addr, stop, ""
		}
	}
	return "", stop, "tinyproxy does not answer"
}
