package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAnswersAtEndOfInput(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(ping("1") + "\n" + shell("2", "sleep 300ms") + "\n" + shell("3", "echo last"))
	lines, err := c.rest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range lines {
		r := decode(t, line)
		got = append(got, string(r.ID)+" "+strings.Split(r.text(), "\n")[0])
	}
	if want := []string{"1 ", "2 slept", "3 last"}; !slices.Equal(got, want) {
		t.Errorf("answers are %q, want %q", got, want)
	}
	if f.closed != 1 {
		t.Errorf("the runner was closed %d times, want 1", f.closed)
	}
}

func TestUnterminatedLastLine(t *testing.T) {
	c := connect(t, New(testOptions(newFakeRunner())))
	if _, err := io.WriteString(c.in, "\n \n"+shell("1", "echo whole")); err != nil {
		t.Fatal(err)
	}
	lines, err := c.rest()
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0], "whole") {
		t.Errorf("got %q, %v; want the one answer", lines, err)
	}
}

// A call and its cancellation come in one write, so that nothing can have happened between them.
func TestCancelInTheSameWrite(t *testing.T) {
	f := newFakeRunner()
	opts := testOptions(f)
	opts.Policy.Order = "parallel"
	opts.Policy.Limits.Runs = 100
	c := connect(t, New(opts))
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "%s\n%s\n", shell(fmt.Sprint(i), "block"), cancelled(fmt.Sprint(i)))
	}
	c.send(b.String() + shell("100", "echo after"))
	lines, err := c.rest()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || string(decode(t, lines[0]).ID) != "100" {
		t.Errorf("cancelled calls must have no answer; got %q", lines)
	}
	if started, ended := f.seen(); len(started) != len(ended) {
		t.Errorf("%d runs began and %d ended", len(started), len(ended))
	}
}

// With the default order the calls wait for each other, and are cancelled while they do.
func TestCancelInTheQueue(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "block"))
	<-f.busy
	for i := 2; i < 10; i++ {
		c.send(shell(fmt.Sprint(i), "echo no"))
	}
	c.send(shell("10", "echo yes"))
	for i := 2; i < 10; i++ {
		c.send(cancelled(fmt.Sprint(i)))
	}
	c.send(cancelled("77") + "\n" + cancelled("null") + "\n" + cancelled("1"))
	if r := decode(t, c.next()); string(r.ID) != "10" || !strings.HasPrefix(r.text(), "yes\n") {
		t.Errorf("got %+v, want the answer to 10", r)
	}
	c.send(cancelled("10") + "\n" + ping("11")) // too late is nothing
	if r := decode(t, c.next()); string(r.ID) != "11" {
		t.Errorf("got %+v, want the answer to 11", r)
	}
	if started, _ := f.seen(); !slices.Equal(started, []string{"block", "echo yes"}) {
		t.Errorf("ran %q", started)
	}
}

func TestPingUnderLoad(t *testing.T) {
	f := newFakeRunner()
	opts := testOptions(f)
	opts.Policy.Order = "parallel"
	c := connect(t, New(opts))
	for i := range 30 {
		c.send(shell(fmt.Sprint(i), "block"))
	}
	for range opts.Policy.Limits.Runs {
		<-f.busy
	}
	begin := time.Now()
	c.send(ping(`"p"`))
	if r := decode(t, c.next()); string(r.ID) != `"p"` {
		t.Fatalf("got %+v, want the answer to the ping", r)
	}
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("a ping took %s", d)
	}
	if started, _ := f.seen(); len(started) != opts.Policy.Limits.Runs {
		t.Errorf("%d runs at once, want limits.runs = %d", len(started), opts.Policy.Limits.Runs)
	}
}

// All requests are written before one answer is read: neither side waits for the other for ever.
func TestManyRequests(t *testing.T) {
	const n = 10_000
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := Serve(t.Context(), inR, outW, New(testOptions(newFakeRunner())))
		outW.Close()
		served <- err
	}()
	for i := range n {
		request := ping(fmt.Sprint(i))
		if i%10 == 0 {
			request = shell(fmt.Sprint(i), "echo hi")
		}
		if _, err := io.WriteString(inW, request+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	inW.Close()
	seen := map[string]int{}
	for lines := bufio.NewScanner(outR); lines.Scan(); {
		r := decode(t, lines.Text())
		if r.Error != nil {
			t.Fatalf("an error: %s", lines.Text())
		}
		seen[string(r.ID)]++
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if len(seen) != n {
		t.Errorf("%d of %d requests were answered", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("request %s was answered %d times", id, times)
		}
	}
}

// Calls run in the order in which they were read.
func TestOrderOfArrival(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	var b strings.Builder
	var want []string
	for i := range 200 {
		command := fmt.Sprintf("echo %d", i)
		want = append(want, command)
		fmt.Fprintf(&b, "%s\n", shell(fmt.Sprint(i), command))
	}
	c.send(b.String())
	if lines, err := c.rest(); err != nil || len(lines) != 200 {
		t.Fatalf("%d answers, %v", len(lines), err)
	}
	if started, _ := f.seen(); !slices.Equal(started, want) {
		t.Errorf("ran %q", started)
	}
}

func TestProgressBeforeTheResult(t *testing.T) {
	for _, token := range []string{`"tok\u0065n"`, `9007199254740993`, `1.0`} {
		s := New(testOptions(newFakeRunner()))
		s.every = 0 // each line is told
		c := connect(t, s)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":"lines 1000"},"_meta":{"progressToken":%s}}}`, token))
		for i := range 1000 {
			r := decode(t, c.next())
			if r.Method != "notifications/progress" || string(r.Params.ProgressToken) != token ||
				r.Params.Progress != int64(i+1) || r.Params.Message != fmt.Sprintf("line %d", i) {
				t.Fatalf("notification %d is %+v", i, r)
			}
		}
		if r := decode(t, c.next()); string(r.ID) != "1" {
			t.Errorf("after the progress came %+v, want the result", r)
		}
		if lines, err := c.rest(); len(lines) > 0 || err != nil {
			t.Errorf("after the result came %q, %v", lines, err)
		}
	}
}

func TestProgressWithoutOutput(t *testing.T) {
	s := New(testOptions(newFakeRunner()))
	s.every = 20 * time.Millisecond
	c := connect(t, s)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":"sleep 300ms"},"_meta":{"progressToken":7}}}`)
	lines, err := c.rest()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 4 || len(lines) > 20 {
		t.Errorf("%d lines, want a notification every 20 ms or so for 300 ms", len(lines))
	}
	if r := decode(t, lines[0]); r.Params.Message != "running" {
		t.Errorf("the first message is %q", r.Params.Message)
	}
}

func TestNoProgressWithoutToken(t *testing.T) {
	s := New(testOptions(newFakeRunner()))
	s.every = 0
	c := connect(t, s)
	c.send(shell("1", "lines 10"))
	if lines, err := c.rest(); err != nil || len(lines) != 1 {
		t.Errorf("got %q, %v; want the result alone", lines, err)
	}
}

func TestIDsComeBackAsTheyWere(t *testing.T) {
	c := connect(t, New(testOptions(newFakeRunner())))
	for _, id := range []string{`9007199254740993`, `123456789012345678901234567890`, `-1`, `0`, `1.0`, `1.5e3`, `""`, `"1"`, `"a\u0041\n"`, `"\ud83d\ude00"`} {
		for _, request := range []string{ping(id), shell(id, "echo x"), shell(id, ""), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"no/such"}`, id)} {
			c.send(request)
			line := c.next()
			if !strings.Contains(line, `"id":`+id+`,`) {
				t.Errorf("the id %s came back in %s", id, line)
			}
		}
	}
}

func TestOneSpellingOfAnIDCancelsAnother(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	for id, other := range map[string]string{`1`: `1.0`, `"a"`: `"\u0061"`, `9007199254740993`: `9007199254740993`} {
		c.send(shell(id, "block"))
		<-f.busy
		c.send(cancelled(`"1"`) + "\n" + cancelled(`9007199254740992`)) // others
		c.send(ping("99"))
		if r := decode(t, c.next()); string(r.ID) != "99" {
			t.Fatalf("got %+v", r)
		}
		c.send(cancelled(other))
	}
	if lines, err := c.rest(); len(lines) > 0 || err != nil {
		t.Errorf("got %q, %v", lines, err)
	}
}

func TestDuplicateID(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "block"))
	<-f.busy
	c.send(shell("1.0", "echo twice"))
	if r := decode(t, c.next()); r.Error == nil || r.Error.Code != -32600 || !strings.Contains(r.Error.Message, "id") {
		t.Errorf("got %+v, want a refusal", r)
	}
	c.send(cancelled("1"))
	if lines, err := c.rest(); len(lines) > 0 || err != nil {
		t.Errorf("got %q, %v", lines, err)
	}
}

func TestPanicFailsOneRequest(t *testing.T) {
	var logged bytes.Buffer
	opts := testOptions(newFakeRunner())
	opts.Log = slog.New(slog.NewTextHandler(&logged, nil))
	c := connect(t, New(opts))
	c.send(shell("1", "panic") + "\n" + shell("2", "bug") + "\n" + shell("3", "echo fine"))
	if r := decode(t, c.next()); r.Error == nil || r.Error.Code != -32603 || strings.Contains(r.Error.Message, "handler") {
		t.Errorf("a panic is answered with %+v", r)
	}
	if r := decode(t, c.next()); r.text() != "error: internal error: a bug\nworkspace: no changes" || !r.Result.IsError {
		t.Errorf("a bug is answered with %q", r.text())
	}
	if r := decode(t, c.next()); !strings.HasPrefix(r.text(), "fine\n") {
		t.Errorf("the next call is answered with %+v", r)
	}
	if _, err := c.rest(); err != nil || !strings.Contains(logged.String(), "a bug in a handler") {
		t.Errorf("the log says %q", logged.String())
	}
}

func TestLongLine(t *testing.T) {
	c := connect(t, New(testOptions(newFakeRunner())))
	var peak atomic.Uint64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapInuse))
			}
		}
	})
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		chunk := strings.Repeat("x", 1<<20)
		// The id stands behind the arguments, and there is another one within them.
		fmt.Fprint(c.in, `{"jsonrpc":"2.0","method":"tools/call","params":{"id":666,"name":"run_shell","arguments":{"command":"`)
		for range 100 {
			fmt.Fprint(c.in, chunk)
		}
		fmt.Fprintf(c.in, "\"}} , \"id\" : 7 }\n%s\n", ping("8"))
		c.in.Close()
	}()
	if r := decode(t, c.next()); string(r.ID) != "7" || r.Error == nil || !strings.Contains(r.Error.Message, "16,777,216 bytes") {
		t.Errorf("a line of 100 MB is answered with %+v", r)
	}
	if r := decode(t, c.next()); string(r.ID) != "8" || r.Error != nil {
		t.Errorf("the next line is answered with %+v", r)
	}
	close(stop)
	watch.Wait()
	if grown := int64(peak.Load()) - int64(before.HeapInuse); grown > 80<<20 {
		t.Errorf("the heap grew by %s bytes for a line of 100 MB", grouped(grown))
	}
}

func TestClientGone(t *testing.T) {
	for _, noticed := range []string{"by poll", "by a write"} {
		t.Run(noticed, func(t *testing.T) {
			if noticed == "by poll" && runtime.GOOS != "linux" {
				t.Skip("only Linux polls")
			}
			f := newFakeRunner()
			c := connect(t, New(testOptions(f)))
			c.send(shell("1", "block"))
			<-f.busy
			begin := time.Now()
			c.out.Close()
			if noticed == "by a write" {
				_, _ = io.WriteString(c.in, ping("2")+"\n")
			}
			select {
			case err := <-c.served:
				if !errors.Is(err, ErrClientGone) {
					t.Errorf("Serve returned %v, want ErrClientGone", err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("Serve does not return")
			}
			if d := time.Since(begin); d > 3*time.Second {
				t.Errorf("it took %s", d)
			}
			if _, ended := f.seen(); len(ended) != 1 || f.closed != 1 {
				t.Errorf("ended %q, closed %d times", ended, f.closed)
			}
		})
	}
}

func TestContextEnds(t *testing.T) {
	why := errors.New("SIGTERM")
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "block") + "\n" + shell("2", "echo waits"))
	<-f.busy
	c.cancel(why)
	lines, err := c.remaining()
	if !errors.Is(err, why) {
		t.Errorf("Serve returned %v", err)
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "exit=cancelled") || !strings.Contains(lines[1], "exit=cancelled") {
		t.Errorf("answers are %q", lines)
	}
	if started, _ := f.seen(); !slices.Equal(started, []string{"block"}) {
		t.Errorf("ran %q", started)
	}
}

func TestRunThatDoesNotEnd(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "stubborn"))
	<-f.busy
	begin := time.Now()
	c.cancel(context.Canceled)
	select {
	case err := <-c.served:
		if err == nil || !strings.Contains(err.Error(), "have not ended") {
			t.Errorf("Serve returned %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Serve does not return")
	}
	if d := time.Since(begin); d > 3500*time.Millisecond {
		t.Errorf("it took %s", d)
	}
}

// A client that does not read holds up nobody but itself.
func TestClientThatDoesNotRead(t *testing.T) {
	inR, inW := io.Pipe()
	s := New(testOptions(newFakeRunner()))
	ctx, cancel := context.WithCancelCause(t.Context())
	served := make(chan error, 1)
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck); inW.Close() })
	go func() {
		served <- Serve(ctx, inR, writerFunc(func([]byte) (int, error) { <-stuck; return 0, os.ErrClosed }), s)
	}()
	for i := range 1000 {
		fmt.Fprintln(inW, ping(fmt.Sprint(i)))
	}
	cancel(errors.New("end"))
	select {
	case <-served:
	case <-time.After(6 * time.Second):
		t.Fatal("Serve does not return")
	}
}

// Nor does it make memory grow: no more runs begin, and no more is read.
func TestMemoryOfAClientThatDoesNotRead(t *testing.T) {
	f := newFakeRunner()
	s := New(testOptions(f))
	stuck := make(chan struct{})
	box := newOutbox(writerFunc(func([]byte) (int, error) { <-stuck; return 0, os.ErrClosed }), func(error) {})
	c := newConn(s, box)
	ctx, cancel := context.WithCancel(t.Context())
	defer func() {
		cancel()
		close(stuck)
		<-c.drain()
	}()
	read := make(chan error, 1)
	var in strings.Builder
	for i := range 40 {
		in.WriteString(shell(fmt.Sprint(i), "echo "+strings.Repeat("x", 100_000)) + "\n")
	}
	for i := range 300_000 {
		in.WriteString(ping(fmt.Sprint(i)) + "\n")
	}
	go func() { read <- c.read(s.mcp.WithContext(ctx, c.session), strings.NewReader(in.String())) }()
	select {
	case <-read:
		t.Error("all was read")
	case <-time.After(2 * time.Second):
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if box.size > throttleSize+1<<20 {
		t.Errorf("%s bytes wait to be written", grouped(int64(box.size)))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestNothingIsLeftBehind(t *testing.T) {
	converse := func() {
		c := connect(t, New(testOptions(newFakeRunner())))
		c.send(shell("1", "echo x") + "\n" + ping("2"))
		if _, err := c.rest(); err != nil {
			t.Fatal(err)
		}
	}
	converse()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 50 {
		converse()
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > goroutines+5 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > goroutines+5 {
		t.Errorf("%d goroutines, were %d", n, goroutines)
	}
	// The two ends that the client of a test holds are closed by its clean-up, at the end.
	if n := openFiles(t); n > files+50*2+5 {
		t.Errorf("%d open files, were %d", n, files)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc/self/fd")
	}
	return len(entries)
}
