package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"airlock/envs"
	"airlock/envs/envstest"
)

// fakeRunner is a Runner that runs nothing: the first word of a command says what becomes of it.
// What the conversation does with calls is tested against it, because it can be made to end, fail
// and block at will.
type fakeRunner struct {
	mu      sync.Mutex
	started []string // commands, in the order in which they began
	ended   []string // and ended, in any way
	closed  int

	environments *envs.Conversation
	index        *envstest.Installer // of environments

	describe string
	permit   error
	busy     chan struct{} // takes a token when a command "block" has begun
	print    chan string   // what a command "print" prints, until it is "end"
}

// say has the command "print" print a text, and returns when it has.
func (f *fakeRunner) say(text string) {
	f.print <- text
	f.print <- "" // is taken once the text was written
}

func newFakeRunner() *fakeRunner {
	return &fakeRunner{busy: make(chan struct{}, 100), print: make(chan string)}
}

func (f *fakeRunner) Run(ctx context.Context, r Request, progress func(string)) (Result, error) {
	what := r.Command + r.Code
	f.mu.Lock()
	f.started = append(f.started, what)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = append(f.ended, what)
	}()
	verb, arg, _ := strings.Cut(what, " ")
	switch verb {
	case "echo":
		return exited(0, arg+"\n"), nil
	case "exit":
		code, err := strconv.Atoi(arg)
		return exited(code, ""), err
	case "block": // until it is cancelled
		f.busy <- struct{}{}
		<-ctx.Done()
		return Result{Status: StatusCancelled, WorkspaceLine: "workspace: discarded 1 change (cancelled)"}, nil
	case "print":
		out := NewOutput(1 << 10)
		r.Printing(out)
		f.busy <- struct{}{}
		for {
			select {
			case text := <-f.print:
				if text == "end" {
					result := exited(0, "")
					result.RunID = r.ID
					result.Output, result.OutputDroppedBytes = out.Snapshot()
					return result, nil
				}
				_, _ = out.Write([]byte(text))
				progress(out.LastLine())
			case <-ctx.Done():
				return Result{Status: StatusCancelled, Output: out.String()}, nil
			}
		}
	case "stubborn": // ends long after it was cancelled
		f.busy <- struct{}{}
		<-ctx.Done()
		time.Sleep(10 * time.Second)
		return exited(0, ""), nil
	case "sleep":
		d, err := time.ParseDuration(arg)
		select {
		case <-time.After(d):
			return exited(0, "slept\n"), err
		case <-ctx.Done():
			return Result{Status: StatusCancelled}, err
		}
	case "lines":
		n, err := strconv.Atoi(arg)
		for i := range n {
			if progress != nil {
				progress(fmt.Sprintf("line %d", i))
			}
		}
		return exited(0, "lines\n"), err
	case "request":
		return exited(0, fmt.Sprintf("%s cwd=%q stdin=%q env=%q timeout=%s on_failure=%q\n", r.Tool, r.Cwd, r.Stdin, r.Env, r.Timeout, r.OnFailure)), nil
	case "panic":
		panic("a bug in a handler")
	case "bug":
		return Result{}, errors.New("a bug")
	}
	return exited(127, what+": not found\n"), nil
}

func exited(code int, output string) Result {
	return Result{Status: StatusExited, ExitCode: &code, Output: output, Workspace: Workspace{Landed: code == 0}}
}

func (f *fakeRunner) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

func (f *fakeRunner) Describe() string { return f.describe }

func (f *fakeRunner) Permit(Request) error { return f.permit }

func (f *fakeRunner) seen() (started, ended []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.started...), append([]string(nil), f.ended...)
}

// testOptions offers the tools on a runner.
func testOptions(f *fakeRunner) Options {
	policy := Policy{LandOn: "success", Network: "deny", Order: "arrival", Limits: DefaultLimits()}
	if f != nil && f.describe == "" {
		f.describe = policy.Describe()
	}
	return Options{
		Version: "test",
		Policy:  policy,
		Open:    func(context.Context, []string) (Runner, error) { return f, nil },
	}
}

// client is the other end of a conversation.
type client struct {
	t      *testing.T
	in     *os.File // to the server
	out    *os.File // from it
	lines  chan string
	served chan error
	cancel context.CancelCauseFunc
}

// connect serves s over two pipes.
func connect(t *testing.T, s *Server) *client {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &client{t: t, in: inW, out: outR, lines: make(chan string, 100_000), served: make(chan error, 1), cancel: cancel}
	go func() {
		err := Serve(ctx, inR, outW, s)
		outW.Close()
		inR.Close()
		c.served <- err
	}()
	go func() {
		defer close(c.lines)
		r := bufio.NewReader(outR)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				c.lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
		cancel(nil)
	})
	return c
}

// send writes text and a newline at once.
func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next line from the server.
func (c *client) next() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the server's output ended")
		}
		return line
	case <-time.After(20 * time.Second):
		c.t.Fatal("no line from the server")
	}
	return ""
}

// rest ends the input and returns all lines that still come, and what Serve returned.
func (c *client) rest() ([]string, error) {
	c.t.Helper()
	c.in.Close()
	return c.remaining()
}

// remaining returns all lines until the output ends, and what Serve returned.
func (c *client) remaining() (lines []string, err error) {
	c.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return lines, <-c.served
			}
			lines = append(lines, line)
		case <-timeout:
			c.t.Fatal("the server's output does not end")
		}
	}
}

// reply is an answer as a client decodes it.
type reply struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProgressToken json.RawMessage
		Progress      int64
		Message       string
	}
	Result *struct {
		Content           []struct{ Text string }
		StructuredContent map[string]any
		IsError           bool
	}
	Error *struct {
		Code    int
		Message string
	}
}

func decode(t *testing.T, line string) reply {
	t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatalf("not JSON: %.300q", line)
	}
	return r
}

func (r reply) text() string {
	if r.Result == nil || len(r.Result.Content) == 0 {
		return ""
	}
	return r.Result.Content[0].Text
}

// shell gives the request of a run_shell with this id, as JSON.
func shell(id, command string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":%q}}}`, id, command)
}

func cancelled(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}

func ping(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id) }

func (f *fakeRunner) Environments(context.Context) (*envs.Conversation, error) {
	if f.environments == nil {
		return nil, errors.New("no environments here")
	}
	return f.environments, nil
}
