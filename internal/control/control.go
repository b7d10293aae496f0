package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Run is a run that goes on.
type Run struct {
	ID        string    `json:"run"`
	Tool      string    `json:"tool"`
	What      string    `json:"what"` // its command or program, of any bytes that JSON takes
	Workspace string    `json:"workspace"`
	State     string    `json:"state"` // "running" | "queued"
	Since     time.Time `json:"since"` // it began, or was asked for
	PID       int       `json:"pid"`   // of the process that has it
}

// Runs is a process's runs. It is safe for concurrent use.
type Runs interface {
	// Runs lists those that go on.
	Runs() []Run
	// Stop ends a run and waits until it has ended. known is false if there is none.
	Stop(ctx context.Context, id string) (known bool, err error)
}

// Bounds of what one side takes from the other.
const (
	maxQuestion  = 4 << 10
	maxAnswer    = 4 << 20
	answerWithin = 2 * time.Second  // to a list
	stopWithin   = 15 * time.Second // the end of a run takes some milliseconds, if the filesystem answers
)

type question struct {
	List bool   `json:"list,omitempty"`
	Stop string `json:"stop,omitempty"`
}

type answer struct {
	Runs    []Run  `json:"runs,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Server answers for one process.
type Server struct {
	listener net.Listener
	remove   func() error
	open     sync.WaitGroup
	end      context.CancelFunc
}

// Serve listens in a directory, which it makes if it is not there, until Close.
func Serve(dir string, runs Runs) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	listener, err := listen(dir, name)
	if err != nil {
		return nil, fmt.Errorf("listen in %s: %w", dir, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{listener: listener, remove: func() error { return os.Remove(filepath.Join(dir, name)) }, end: cancel}
	s.open.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.open.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				serve(ctx, conn, runs)
			})
		}
	})
	return s, nil
}

// Close removes the socket and ends the conversations that go on, after a moment: who asked for the end of the last run
// is to be answered, although the process ends with it.
func (s *Server) Close() error {
	err := errors.Join(s.listener.Close(), s.remove())
	late := time.AfterFunc(answerWithin/4, s.end)
	s.open.Wait()
	late.Stop()
	s.end()
	return err
}

func serve(ctx context.Context, conn net.Conn, runs Runs) {
	_ = conn.SetDeadline(time.Now().Add(stopWithin))
	var q question
	var a answer
	line, err := bufio.NewReader(io.LimitReader(conn, maxQuestion)).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &q)
	}
	switch {
	case err != nil:
		a.Error = "not a question: " + err.Error()
	case q.List:
		a.Runs = runs.Runs()
	case q.Stop != "":
		stopping, cancel := context.WithTimeout(ctx, stopWithin)
		defer cancel()
		if a.Stopped, err = runs.Stop(stopping, q.Stop); err != nil {
			a.Error = err.Error()
		}
	}
	if b, err := json.Marshal(a); err == nil {
		_, _ = conn.Write(append(b, '\n')) // who asked may be gone
	}
}

// List lists the runs of all processes that listen in a directory, the oldest first. A process that does not
// answer in time is an error, beside the runs of the others.
func List(ctx context.Context, dir string) ([]Run, error) {
	answers, err := ask(ctx, dir, question{List: true}, answerWithin)
	var all []Run
	for _, a := range answers {
		all = append(all, a.Runs...)
	}
	slices.SortFunc(all, func(a, b Run) int { return a.Since.Compare(b.Since) })
	return all, err
}

// Stop ends a run, whichever process has it, and reports whether one had it.
func Stop(ctx context.Context, dir, id string) (bool, error) {
	answers, err := ask(ctx, dir, question{Stop: id}, stopWithin)
	for _, a := range answers {
		if a.Error != "" {
			err = errors.Join(err, errors.New(a.Error))
		}
		if a.Stopped {
			return true, nil
		}
	}
	return false, err
}

// ask asks all of them at once.
func ask(ctx context.Context, dir string, q question, within time.Duration) ([]answer, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answers, errs := make([]answer, len(entries)), make([]error, len(entries))
	var asking sync.WaitGroup
	for i, e := range entries {
		asking.Go(func() { answers[i], errs[i] = askOne(ctx, dir, e.Name(), q) })
	}
	asking.Wait()
	return answers, errors.Join(errs...)
}

func askOne(ctx context.Context, dir, name string, q question) (a answer, err error) {
	conn, err := dial(ctx, dir, name)
	switch {
	case refused(err):
		_ = os.Remove(filepath.Join(dir, name)) // its process is gone
		return a, nil
	case errors.Is(err, os.ErrNotExist):
		return a, nil
	case err != nil:
		return a, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	b, err := json.Marshal(q)
	if err == nil {
		_, err = conn.Write(append(b, '\n'))
	}
	var line []byte
	if err == nil {
		line, err = bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		pid, _, _ := strings.Cut(name, "-")
		return a, fmt.Errorf("the airlock process %s does not answer: %w", pid, err)
	}
	return a, nil
}
