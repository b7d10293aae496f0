package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var edge = flag.Bool("edge", false, "measure a server at its edge, with real runs: about a minute with both processors busy")

// edgeServer is a server as a client starts it: a process, and its two pipes.
type edgeServer struct {
	t         *testing.T
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       io.ReadCloser
	lines     *bufio.Reader
	workspace string
	state     string
}

// serveAtEdge starts one with runs that go side by side, and initializes it.
func serveAtEdge(t *testing.T) *edgeServer {
	t.Helper()
	s := startServer(t, "AIRLOCK_LIMITS_RUNS=20", "AIRLOCK_WORKSPACE_ORDER=parallel")
	s.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"edge","version":"1"}}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.next()
	return s
}

// startServer starts one, with more variables.
func startServer(t *testing.T, env ...string) *edgeServer {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &edgeServer{t: t, workspace: filepath.Join(dir, "ws"), state: filepath.Join(dir, "state")}
	for _, d := range []string{s.workspace, filepath.Join(dir, "home")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.cmd = &exec.Cmd{Path: self, Args: []string{"airlock", "serve", "--workspace", s.workspace, "--log-level", "error"}, Stderr: os.Stderr}
	s.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "XDG_STATE_HOME=" + s.state,
	}
	s.cmd.Env = append(s.cmd.Env, env...)
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.in.Close()
		s.out.Close()
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	s.lines = bufio.NewReaderSize(s.out, 1<<20)
	return s
}

func (s *edgeServer) send(lines ...string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, strings.Join(lines, "\n")+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

type edgeMessage struct {
	ID     json.RawMessage
	Method string
	Error  *struct{ Message string }
	Result struct {
		StructuredContent struct {
			Status string
			Output string
		}
	}
	Params struct{ Progress float64 }
}

func (s *edgeServer) next() (m edgeMessage) {
	s.t.Helper()
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		s.t.Fatalf("the server has ended: %v", err)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		s.t.Fatalf("%v: %.200s", err, line)
	}
	return m
}

// pings sends n of them, and says how long each took.
func (s *edgeServer) pings(n int) (took []time.Duration) {
	s.t.Helper()
	for i := range n {
		begin := time.Now()
		s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1000+i))
		if m := s.next(); string(m.ID) != strconv.Itoa(1000+i) {
			s.t.Fatalf("got %+v", m)
		}
		took = append(took, time.Since(begin))
		time.Sleep(20 * time.Millisecond)
	}
	return took
}

// peak is the most memory that the server had resident, in MiB.
func (s *edgeServer) peak() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "VmHWM:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				s.t.Fatal(err)
			}
			return kib >> 10
		}
	}
	s.t.Fatal("no VmHWM")
	return 0
}

// ends waits for the end of the server and of all that it started, and says how long that took.
func (s *edgeServer) ends(since time.Time) time.Duration {
	s.t.Helper()
	_ = s.cmd.Wait() // its status depends on how it was ended
	took := time.Since(since)
	if took > 3*time.Second {
		s.t.Errorf("it took %s to end", took)
	}
	layers, err := filepath.Glob(filepath.Join(s.state, "airlock", "workspaces", "*", "layers", "*-*", "*"))
	if err != nil || len(layers) > 0 {
		s.t.Errorf("left: %v, %v", layers, err)
	}
	deadline := time.Now().Add(3 * time.Second)
	for left := ""; ; time.Sleep(20 * time.Millisecond) {
		if left = s.processes(); left == "" {
			return took
		}
		if time.Now().After(deadline) {
			s.t.Errorf("processes are left: %s", left)
			return took
		}
	}
}

// processes names the processes that have the workspace mounted, or in their environment.
func (s *edgeServer) processes() string {
	var found []string
	infos, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, info := range infos {
		dir := filepath.Dir(info)
		if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		mounts, _ := os.ReadFile(info)
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if bytes.Contains(mounts, []byte(s.workspace)) || bytes.Contains(env, []byte(s.state)) {
			found = append(found, dir)
		}
	}
	return strings.Join(found, " ")
}

func edgeCall(id int, command string, more string) string {
	text, _ := json.Marshal(command)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":%s}%s}}`, id, text, more)
}

// TestEdge measures what a client meets at worst, with real runs. The figures are in docs/benchmarks.md.
func TestEdge(t *testing.T) {
	if !*edge {
		t.Skip("asked for with -edge")
	}
	if err := sandboxHere(); err != nil {
		t.Fatal(err)
	}
	t.Run("cancelled in the same write", func(t *testing.T) {
		s := serveAtEdge(t)
		var lines []string
		for i := 1; i <= 20; i++ {
			lines = append(lines, edgeCall(i, "sleep 1000", ""), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
		}
		s.send(append(lines, edgeCall(21, "echo after", ""))...)
		if m := s.next(); string(m.ID) != "21" || m.Result.StructuredContent.Output != "after\n" {
			t.Errorf("got %+v", m)
		}
		begin := time.Now()
		s.in.Close()
		t.Logf("20 of 20 honoured; the end of the input: gone after %s", s.ends(begin))
	})
	t.Run("progress", func(t *testing.T) {
		s := serveAtEdge(t)
		s.send(edgeCall(1, "for i in 1 2 3 4; do echo $i; sleep 1; done", `,"_meta":{"progressToken":"p"}`))
		var notes []float64
		m := s.next()
		for ; m.Method == "notifications/progress"; m = s.next() {
			notes = append(notes, m.Params.Progress)
		}
		if string(m.ID) != "1" || len(notes) < 2 || !slices.IsSorted(notes) {
			t.Errorf("progress %v, then %+v", notes, m)
		}
		t.Logf("%d notes in 4 s, in order, before the result", len(notes))
	})
	t.Run("ping while 20 runs flood", func(t *testing.T) {
		s := serveAtEdge(t)
		for i := 1; i <= 20; i++ {
			s.send(edgeCall(i, ": > began; while :; do head -c 1000000 /dev/zero | tr '\\0' x; done", ""))
		}
		flooding := func() int {
			all, _ := filepath.Glob(filepath.Join(s.state, "airlock", "workspaces", "*", "layers", "*-*", "*", "upper", "began"))
			return len(all)
		}
		var starting []time.Duration
		for deadline := time.Now().Add(time.Minute); flooding() < 20; {
			starting = append(starting, s.pings(1)...)
			if time.Now().After(deadline) {
				t.Fatalf("%d runs began", flooding())
			}
		}
		slices.Sort(starting)
		n := len(starting)
		t.Logf("%d pings while they start: median %s, 95 of 100 within %s, longest %s", n, starting[n/2], starting[n*95/100], starting[n-1])
		took := s.pings(100)
		slices.Sort(took)
		t.Logf("100 pings while all print: median %s, 95 within %s, longest %s; %d MiB resident at most", took[50], took[94], took[99], s.peak())
		if took[94] > 100*time.Millisecond {
			t.Errorf("a ping takes %s", took[94])
		}
		begin := time.Now()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, s.lines)
		t.Logf("SIGHUP with 20 runs: gone after %s", s.ends(begin))
	})
	t.Run("large messages", func(t *testing.T) {
		s := serveAtEdge(t)
		s.send(edgeCall(1, ": "+strings.Repeat("x", 10<<20), ""))
		m := s.next()
		t.Logf("a command of 10 MB: %s%v, %d MiB resident at most", m.Result.StructuredContent.Status, m.Error, s.peak())
		s.send(strings.Replace(edgeCall(2, "cat | wc -c", ""), `"command"`, `"stdin":"`+strings.Repeat("x", 10<<20)+`","command"`, 1))
		if m := s.next(); m.Result.StructuredContent.Output != "10485760\n" {
			t.Errorf("stdin of 10 MB: %+v", m)
		}
		t.Logf("stdin of 10 MB: %d MiB resident at most", s.peak())
		go io.WriteString(s.in, edgeCall(3, strings.Repeat("x", 100<<20), "")+"\n")
		if m := s.next(); string(m.ID) != "3" || m.Error == nil {
			t.Errorf("a line of 100 MB: %+v", m)
		}
		t.Logf("a line of 100 MB: refused, %d MiB resident at most", s.peak())
		begin := time.Now()
		for i := range 10_000 {
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i+10))
			s.next()
		}
		t.Logf("10,000 requests one after another: %s, %d MiB resident at most", time.Since(begin).Round(time.Millisecond), s.peak())
		if p := s.peak(); p > 400 {
			t.Errorf("%d MiB", p)
		}
	})
	t.Run("a client that does not read", func(t *testing.T) {
		s := serveAtEdge(t)
		s.send(edgeCall(1, "sleep 1000", ""))
		var sent int
		for ; sent < 20_000; sent++ { // until the server reads no more
			done := make(chan bool, 1)
			go func() {
				_, err := fmt.Fprintf(s.in, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/list\"}\n", sent+10)
				done <- err == nil
			}()
			select {
			case <-done:
				continue
			case <-time.After(5 * time.Second):
			}
			break
		}
		if sent == 20_000 {
			t.Error("it reads on")
		}
		t.Logf("after %d requests it reads no more; %d MiB resident at most", sent, s.peak())
		begin := time.Now()
		s.out.Close()
		t.Logf("its end of the output closed: gone after %s", s.ends(begin))
	})
}
