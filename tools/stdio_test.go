package tools

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
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

func TestPanicFailsOneRequest(t *testing.T) {
	var logged bytes.Buffer
	opts := testOptions(newFakeRunner())
	opts.Log = slog.New(slog.NewTextHandler(&logged, nil))
	c := connect(t, New(opts))
	c.send(shell("1", "panic") + "\n" + shell("2", "bug") + "\n" + shell("3", "echo fine"))
	if r := decode(t, c.next()); r.text() != "error: internal error; the server's log says more\nworkspace: no changes" || !r.Result.IsError {
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
