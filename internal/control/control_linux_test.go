package control

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake has runs that are named.
type fake struct {
	ids     []string
	stopped []string
	err     error
}

func (f *fake) Runs() []Run {
	var all []Run
	for i, id := range f.ids {
		all = append(all, Run{ID: id, What: "x\nü", Since: time.Unix(int64(len(id)*100-i), 0)})
	}
	return all
}

func (f *fake) Stop(_ context.Context, id string) (bool, error) {
	if !slices.Contains(f.ids, id) {
		return false, nil
	}
	f.stopped = append(f.stopped, id)
	return f.err == nil, f.err
}

func start(t *testing.T, dir string, runs Runs) *Server {
	t.Helper()
	s, err := Serve(dir, runs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Several processes, with a path longer than a socket's name can be.
func TestListAndStop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	if runs, err := List(t.Context(), dir); err != nil || len(runs) > 0 {
		t.Errorf("without a directory: %v, %v", runs, err)
	}
	a, b := &fake{ids: []string{"aa", "bbb"}}, &fake{ids: []string{"c"}}
	sa := start(t, dir, a)
	start(t, dir, b)
	runs, err := List(t.Context(), dir)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	if err != nil || !slices.Equal(ids, []string{"c", "aa", "bbb"}) || runs[0].What != "x\nü" {
		t.Errorf("%v, %v", runs, err)
	}
	if found, err := Stop(t.Context(), dir, "c"); err != nil || !found || !slices.Equal(b.stopped, []string{"c"}) || a.stopped != nil {
		t.Errorf("stop: %v, %v; %v, %v", found, err, a.stopped, b.stopped)
	}
	if found, err := Stop(t.Context(), dir, "none"); err != nil || found {
		t.Errorf("stop of none: %v, %v", found, err)
	}
	a.err = errors.New("it does not end")
	if found, err := Stop(t.Context(), dir, "aa"); found || err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("%v, %v", found, err)
	}
	if err := sa.Close(); err != nil {
		t.Error(err)
	}
	if runs, err := List(t.Context(), dir); err != nil || len(runs) != 1 {
		t.Errorf("after its end: %v, %v", runs, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestProcessThatIsGone(t *testing.T) {
	dir := t.TempDir()
	l, err := listen(dir, "1-1")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // its name stays, as after a SIGKILL
	if _, err := os.Lstat(filepath.Join(dir, "1-1")); err != nil {
		t.Fatal(err)
	}
	if runs, err := List(t.Context(), dir); err != nil || len(runs) > 0 {
		t.Errorf("%v, %v", runs, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestProcessThatDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	l, err := listen(dir, "77-1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start(t, dir, &fake{ids: []string{"a"}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	runs, err := List(ctx, dir)
	if err == nil || !strings.Contains(err.Error(), "process 77 does not answer") || len(runs) != 1 {
		t.Errorf("%v, %v", runs, err)
	}
}

func TestNotAQuestion(t *testing.T) {
	dir := t.TempDir()
	start(t, dir, &fake{})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for _, line := range []string{"x\n", strings.Repeat("x", 2*maxQuestion)} {
		conn, err := dial(t.Context(), dir, entries[0].Name())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(line))
		b := make([]byte, 100)
		n, err := conn.Read(b)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() || n > 0 && !strings.Contains(string(b[:n]), "not a question") {
			t.Errorf("%.10q is answered with %q, %v", line, b[:n], err)
		}
		conn.Close()
	}
}

// ending is a run with whose end its process ends.
type ending struct {
	fake
	closed func()
}

func (e *ending) Stop(context.Context, string) (bool, error) {
	e.closed()
	return true, nil
}

// Who ends the last run of a process is answered, although the process closes everything at once.
func TestAnswerOfTheLast(t *testing.T) {
	dir := t.TempDir()
	for range 20 {
		e, closed := &ending{}, make(chan error, 1)
		s, err := Serve(dir, e)
		if err != nil {
			t.Fatal(err)
		}
		e.closed = func() { go func() { closed <- s.Close() }(); time.Sleep(time.Millisecond) }
		if stopped, err := Stop(t.Context(), dir, "a"); !stopped || err != nil {
			t.Errorf("stopped %v, %v", stopped, err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
}
