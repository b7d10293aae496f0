package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Options say what a [Server] offers. Version, Policy and Open must be set.
type Options struct {
	Version string // of airlock, as clients show it
	Policy  Policy
	Tools   Config

	// Open opens the workspace's Runner at the first call.
	Open Opener
	// AskRoots asks the client for its roots before that, because nothing else names the workspace.
	AskRoots bool
	// OpenAhead opens it when the conversation begins, so that the first call need not wait for that. An error
	// is told by the call, which tries again.
	OpenAhead bool

	// Log takes what a person who looks for a fault needs; nil is nothing.
	Log *slog.Logger

	// OutputFile makes a file for the output of a run that is too long for a result. It is removed when the
	// conversation ends, or long after the run. nil keeps no such output.
	OutputFile func(name string) (*os.File, error)
}

// Server is the tools for one conversation; [Serve] connects it to a client.
type Server struct {
	opts    Options
	log     *slog.Logger
	mcp     *server.MCPServer
	queue   *queue // the order of calls
	places  *queue // how many run at once
	jobs    jobs
	notices notices
	files   sync.Mutex    // held while opts.OutputFile makes one
	every   time.Duration // between two progress notifications
	ending  atomic.Bool   // the client sends nothing more

	// opened guards runner: its one token is there when nobody is opening it. It is a channel because
	// a call that waits for it can be cancelled.
	opened  chan struct{}
	pending pendingPlans
	runner  Runner
	differ  string // what runner.Describe says beyond the descriptions, until a result has told it
}

// New makes a Server.
func New(opts Options) *Server {
	order := 1
	if opts.Policy.Order == "parallel" {
		order = math.MaxInt
	}
	s := &Server{
		opts:   opts,
		log:    opts.Log,
		queue:  newQueue(order),
		places: newQueue(max(1, opts.Policy.Limits.Runs)),
		every:  time.Second,
		opened: make(chan struct{}, 1),
	}
	s.opened <- struct{}{}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.mcp = server.NewMCPServer("airlock", opts.Version,
		server.WithTitle("airlock"),
		server.WithToolCapabilities(false),
		server.WithResourceCapabilities(false, false),
		server.WithLogging(),
		server.WithInstructions(opts.Policy.instructions()),
		server.WithHooks(s.hooks()),
	)
	for _, t := range offered(opts.Tools, opts.Policy) {
		s.mcp.AddTool(t.Tool, s.handler(t))
	}
	s.mcp.AddResourceTemplate(outputTemplate(), s.readOutput)
	return s
}

// call is what the reader of the conversation knows of a call beside its message.
type call struct {
	ticket *ticket
	token  json.RawMessage           // the progress token as the client wrote it; nil if it wants no progress
	notify func(line []byte)         // sends a notification, or drops it if the client does not keep up
	room   func(ctx context.Context) // waits while the client is far behind in reading

	conversation context.Context // what a run lives in that outlives its call

	failed *string // where hooks puts what the error is that answers it, if mcp-go's own text does not do
}

type callKey struct{}

// handler serves the calls of one tool.
func (s *Server) handler(t tool) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c, ok := ctx.Value(callKey{}).(call)
		if !ok {
			return nil, fmt.Errorf("bug: %s was called outside of a conversation", t.Name)
		}
		defer s.notices.during(ctx)()
		if t.packages != nil {
			return s.packageCall(ctx, c, t, req)
		}
		r, err := t.read(req.Params.RawArguments)
		if err != nil {
			return toolResult(Failed(err.Error())), nil
		}
		if s.mustAskFirst(ctx, req) {
			return server.NewInputRequestBuilder("").Roots(rootsInput).ToolResult(), nil
		}
		return toolResult(s.serve(ctx, c, r, req)), nil
	}
}

// serve does one call that has good arguments.
func (s *Server) serve(ctx context.Context, c call, r Request, req mcp.CallToolRequest) Result {
	if r.RunID != "" {
		return s.follow(ctx, c, r)
	}
	p := startProgress(c.token, s.every, c.notify)
	defer p.stop()
	j, err := s.start(ctx, c, c.ticket, s.running(r), req, p)
	if err != nil {
		return Failed(err.Error())
	}
	return s.await(ctx, j, s.waitOf(r), p)
}

// panicked notes a bug that failed one request only. It is called in the deferred function that recovered.
func (s *Server) panicked(what string, cause any) {
	s.log.Error("a request failed by a bug", "method", what, "panic", cause, "stack", string(debug.Stack()))
}

// open returns the Runner, and what the model must hear of it that no description said.
func (s *Server) open(ctx context.Context, req mcp.CallToolRequest) (r Runner, news string, err error) {
	select {
	case <-s.opened:
		defer func() { s.opened <- struct{}{} }()
	case <-ctx.Done():
		return nil, "", context.Cause(ctx)
	}
	if s.runner == nil {
		var roots []string
		if s.opts.AskRoots {
			if roots, err = s.roots(ctx, req); err != nil {
				return nil, "", err
			}
		}
		if err := s.make(ctx, roots); err != nil {
			return nil, "", err
		}
	}
	news, s.differ = s.differ, ""
	return s.runner, news, nil
}

// openAhead is for a Server that needs nothing of the client to open its Runner.
func (s *Server) openAhead(ctx context.Context) {
	select {
	case <-s.opened:
		defer func() { s.opened <- struct{}{} }()
	case <-ctx.Done():
		return
	}
	if s.runner == nil && !s.ending.Load() {
		if err := s.make(ctx, nil); err != nil {
			s.log.Warn("the workspace can't be opened yet", "err", err)
		}
	}
}

// make opens the Runner. It is called with the token of opened.
func (s *Server) make(ctx context.Context, roots []string) error {
	r, err := s.opts.Open(ctx, roots)
	if err != nil {
		return err
	}
	s.runner = r
	if d := r.Describe(); d != s.opts.Policy.Describe() {
		s.differ = strings.TrimSpace(strings.TrimPrefix(d, s.opts.Policy.Describe())) // notes stand at the end
	}
	return nil
}

// close ends what still runs, and closes the Runner, if there is one.
func (s *Server) close(ctx context.Context) error {
	s.jobs.end(ctx, errInputEnded)
	select {
	case <-s.opened:
		defer func() { s.opened <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.runner == nil {
		return nil
	}
	r := s.runner
	s.runner = nil
	return r.Close()
}

// toolResult gives r as a client gets it, twice: as structure and as text.
func toolResult(r Result) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(r.Text())},
		StructuredContent: r.structured(),
		IsError:           r.IsError(),
	}
}
