package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
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

	// Log takes what a person who looks for a fault needs; nil is nothing.
	Log *slog.Logger
}

// Server is the tools for one conversation; [Serve] connects it to a client.
type Server struct {
	opts  Options
	log   *slog.Logger
	mcp   *server.MCPServer
	queue *queue
	every time.Duration // between two progress notifications

	// opened guards runner: its one token is there when nobody is opening it. It is a channel because
	// a call that waits for it can be cancelled.
	opened  chan struct{}
	pending pendingPlans
	runner  Runner
	differ  string // what runner.Describe says beyond the descriptions, until a result has told it
}

// New makes a Server.
func New(opts Options) *Server {
	size := 1
	if opts.Policy.Order == "parallel" {
		size = max(1, opts.Policy.Limits.Runs)
	}
	s := &Server{
		opts:   opts,
		log:    opts.Log,
		queue:  newQueue(size),
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
		server.WithInstructions(opts.Policy.instructions()),
	)
	for _, t := range offered(opts.Tools, opts.Policy) {
		s.mcp.AddTool(t.Tool, s.handler(t))
	}
	return s
}

// call is what the reader of the conversation knows of a call beside its message.
type call struct {
	ticket *ticket
	token  json.RawMessage           // the progress token as the client wrote it; nil if it wants no progress
	notify func(line []byte)         // sends a notification, or drops it if the client does not keep up
	room   func(ctx context.Context) // waits while the client is far behind in reading
}

type callKey struct{}

// handler serves the calls of one tool.
func (s *Server) handler(t tool) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c, ok := ctx.Value(callKey{}).(call)
		if !ok {
			return nil, fmt.Errorf("bug: %s was called outside of a conversation", t.Name)
		}
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
		return toolResult(s.run(ctx, c, r, req)), nil
	}
}

// run does one call that has good arguments: it waits for its turn, and opens the Runner if this is
// the first.
func (s *Server) run(ctx context.Context, c call, r Request, req mcp.CallToolRequest) Result {
	p := startProgress(c.token, s.every, c.notify)
	defer p.stop()
	if err := c.ticket.wait(ctx); err != nil {
		return Result{Status: StatusCancelled, Notes: []string{"The call never started."}}
	}
	c.room(ctx)
	runner, news, err := s.open(ctx, req)
	if err != nil {
		s.log.Warn("no run is possible", "err", err)
		return Refused(err.Error())
	}
	var result Result
	if err := runner.Permit(r); err != nil {
		result = Refused(err.Error())
	} else if result, err = runner.Run(ctx, r, p.take()); err != nil {
		s.log.Error("a run failed", "tool", r.Tool, "err", err)
		result = Failed("internal error: " + err.Error())
	}
	if news != "" {
		result.Notes = append(result.Notes, news)
	}
	return result
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
		s.runner, err = s.opts.Open(ctx, roots)
		if err != nil {
			s.runner = nil
			return nil, "", err
		}
		if d := s.runner.Describe(); d != s.opts.Policy.Describe() {
			s.differ = strings.TrimSpace(strings.TrimPrefix(d, s.opts.Policy.Describe())) // notes stand at the end
		}
	}
	news, s.differ = s.differ, ""
	return s.runner, news, nil
}

// close closes the Runner, if there is one.
func (s *Server) close(ctx context.Context) error {
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
