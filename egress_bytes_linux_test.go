package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"airlock/internal/mcpclient"
	"airlock/tools"
)

var egressMiB = flag.Int64("egress-mib", 16, "how many MiB TestEgressBytes moves by each way and in each direction; 1024 is a GiB")

// farSide is a server that [egressMove] talks to.
type farSide struct {
	addr   *net.TCPAddr
	open   atomic.Int64 // connections
	most   atomic.Int64 // that were open at a time
	moving atomic.Int64 // those without an end that have moved a MiB
}

func startFarSide(t *testing.T) *farSide {
	t.Helper()
	l, err := net.Listen("tcp", ownLoopback()+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f := &farSide{addr: l.Addr().(*net.TCPAddr)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.most.Store(max(f.most.Load(), f.open.Add(1))) // by this goroutine alone
			go func() {
				defer f.open.Add(-1)
				defer conn.Close()
				f.serve(conn)
			}()
		}
	}()
	return f
}

// serve does what a client asks for. An error is the end of the connection: the client has to notice it.
func (f *farSide) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	var what string
	var size int64
	if _, err := fmt.Fscanln(in, &what, &size); err != nil {
		return
	}
	switch what {
	case "down":
		_, _ = io.CopyN(conn, egressStream(), size)
	case "up":
		if sum, err := egressSum(in); err == nil {
			_, _ = io.WriteString(conn, sum)
		}
	case "hold":
		_, _ = io.WriteString(conn, "held\n")
		_, _ = in.ReadByte()
	case "endless":
		if _, err := io.CopyN(conn, egressStream(), 1<<20); err != nil {
			return
		}
		f.moving.Add(1)
		defer f.moving.Add(-1)
		_, _ = io.Copy(conn, egressStream())
	}
}

// wait waits until a count is n.
func (f *farSide) wait(t *testing.T, count *atomic.Int64, n int64, what string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); count.Load() != n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d %s, want %d", count.Load(), what, n)
		}
	}
}

func (f *farSide) config() string {
	return fmt.Sprintf(`[network]
mode = "allowlist"
allow = ["far.test:%d"]
private = ["%[2]s/32"]
resolve = {"far.test" = "%[2]s"}
[limits]
timeout = "1h"
max_timeout = "1h"
`, f.addr.Port, f.addr.IP)
}

// command is what a run executes to move bytes, by the redirect or by the proxy.
func (f *farSide) command(byProxy bool, args string) string {
	by := ""
	if byProxy {
		by = "-by ${http_proxy#http://} "
	}
	return fmt.Sprintf("./egress-client move %s%s far.test:%d", by, args, f.addr.Port)
}

// egressMover opens a runner whose runs reach a far side, and returns what it has once a run of each kind is over.
func egressMover(t *testing.T) (f *farSide, runner tools.Runner, state string, before belongings) {
	t.Helper()
	if err := egressHere(t, "native"); err != nil {
		lacksForEgress(t, err)
	}
	f = startFarSide(t)
	runner, state, ws := configuredRunner(t, f.config(), func(*settings) {})
	copyEgressClient(t, ws)
	for _, byProxy := range []bool{false, true} {
		move(t, f, runner, byProxy, "-n 20 -size 1000 down", "20 times 1000 bytes ")
	}
	f.wait(t, &f.open, 0, "connections are open at the far side")
	// The sandbox of the next run, which is begun ahead, belongs to it.
	for end := time.Now().Add(time.Minute); ; {
		last := before
		if before = look(t, state); before.counts() == last.counts() || time.Now().After(end) {
			return f, runner, state, before
		}
	}
}

// counts is b without what varies by itself.
func (b belongings) counts() belongings {
	b.heap, b.resident, b.threads = 0, 0, 0
	return b
}

func move(t *testing.T, f *farSide, runner tools.Runner, byProxy bool, args, want string) {
	t.Helper()
	start := time.Now()
	result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: f.command(byProxy, args), Timeout: time.Hour}, nil)
	if err != nil || result.Status != tools.StatusExited || !strings.HasPrefix(result.Output, want) || strings.Count(result.Output, "\n") != 1 {
		t.Fatalf("%s: %v, want %q, got\n%s", args, err, want, result.Text())
	}
	t.Logf("by the proxy: %v, %s: %v", byProxy, args, time.Since(start).Round(time.Millisecond))
}

// nothingLeft compares what the server has with what it had before.
func nothingLeft(t *testing.T, f *farSide, state string, before belongings) {
	t.Helper()
	f.wait(t, &f.open, 0, "connections are open at the far side")
	after := look(t, state)
	for end := time.Now().Add(20 * time.Second); after.counts() != before.counts() && time.Now().Before(end); {
		after = look(t, state)
	}
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	if after.counts() != before.counts() {
		t.Error("something is left")
	}
}

// TestEgressBytes puts load on the way out of runs, by the redirect and by the proxy, and looks for what it leaves.
func TestEgressBytes(t *testing.T) {
	f, runner, state, before := egressMover(t)
	for _, part := range []struct {
		name string
		do   func(*testing.T, *farSide, tools.Runner)
	}{{"equal", moveBytes}, {"a thousand connections", holdConnections}, {"a run that ends", endInTransfer}} {
		if t.Run(part.name, func(t *testing.T) { part.do(t, f, runner) }) {
			nothingLeft(t, f, state, before)
		}
	}
}

// moveBytes moves bytes both ways: all of them arrive as they were, also with 200 connections at a time, and with a
// client that ends its direction first.
func moveBytes(t *testing.T, f *farSide, runner tools.Runner) {
	for _, load := range []struct {
		connections int
		size        int64
	}{{1, *egressMiB << 20}, {200, 20_000}} {
		sum, err := egressSum(io.LimitReader(egressStream(), load.size))
		if err != nil {
			t.Fatal(err)
		}
		for _, byProxy := range []bool{false, true} {
			for _, direction := range []string{"down", "up"} {
				move(t, f, runner, byProxy, fmt.Sprintf("-n %d -size %d %s", load.connections, load.size, direction),
					fmt.Sprintf("%d times %s", load.connections, sum))
			}
		}
	}
}

// holdConnections has a thousand connections open at a time.
func holdConnections(t *testing.T, f *farSide, runner tools.Runner) {
	// A run gets three quarters of those that half of the server's descriptors are enough for, six each.
	const enough = 1000 * 4 / 3 * 6 * 2
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < enough+100 {
		lacksForEgress(t, fmt.Errorf("this process may open %d files (%v): too few for a thousand connections of a run", limit.Cur, err))
	}
	for _, byProxy := range []bool{false, true} {
		f.most.Store(0)
		move(t, f, runner, byProxy, "-n 1000 hold", "1000 times held")
		f.wait(t, &f.open, 0, "connections are open at the far side")
		if most := f.most.Load(); most != 1000 {
			t.Errorf("%d connections were open at the far side", most)
		}
	}
}

// endInTransfer ends runs while bytes flow: the far side sees the end of every connection.
func endInTransfer(t *testing.T, f *farSide, runner tools.Runner) {
	for _, byProxy := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan tools.Result, 1)
		go func() {
			result, _ := runner.Run(ctx, tools.Request{Tool: "run_shell", Command: f.command(byProxy, "-n 10 endless"), Timeout: time.Hour}, nil)
			ended <- result
		}()
		f.wait(t, &f.moving, 10, "transfers go on")
		cancel()
		if result := <-ended; result.Status != tools.StatusCancelled {
			t.Errorf("the run ended with %s", result.Text())
		}
		// The run is over when its call is: by then nothing of it moves any more.
		f.wait(t, &f.open, 0, "connections are open at the far side")
	}
}

// TestEgressServerKilled kills a server with SIGKILL while connections of its run are open.
func TestEgressServerKilled(t *testing.T) {
	if err := egressHere(t, "native"); err != nil {
		lacksForEgress(t, err)
	}
	f := startFarSide(t)
	ws, home := t.TempDir(), t.TempDir()
	copyEgressClient(t, ws)
	serve := func() (*mcpclient.Client, *exec.Cmd, *bytes.Buffer) {
		cmd := exec.Command("airlock", "serve", "--workspace", ws, "--config", writeIn(t, home, "config.toml", f.config(), 0o600))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state")}
		var log bytes.Buffer
		cmd.Stderr = &log
		client, err := mcpclient.Start(t.Context(), cmd)
		if err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		return client, cmd, &log
	}
	client, cmd, _ := serve()
	answered := make(chan error, 1)
	go func() {
		_, err := client.CallTool(t.Context(), "run_shell", map[string]any{
			"command": f.command(false, "-n 10 endless") + " & " + f.command(true, "-n 10 endless") + " & wait",
		}, nil)
		answered <- err
	}()
	f.wait(t, &f.moving, 20, "transfers go on")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.wait(t, &f.open, 0, "connections are open at the far side")
	if err := <-answered; err == nil {
		t.Error("the run of a killed server was answered")
	}
	_ = client.Close() // it says how the server ended

	// The next server removes what is left of the one that was killed, as it opens the workspace, for its first run at the latest.
	client, _, log := serve()
	if _, err := client.CallTool(t.Context(), "run_shell", map[string]any{"command": "true"}, nil); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	if err := client.Close(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}
