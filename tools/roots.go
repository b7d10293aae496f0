package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// The roots of a client say which workspace it has open. They are asked for at the first call, not
// before: then they are those of now, whatever notifications/roots/list_changed came earlier.
//
// A client of a protocol up to 2025-11-25 is asked by a request of ours. Since 2026-07-28 servers
// send no requests: the first call is answered with a question, and the client repeats it with the
// answer.

const (
	// rootsInput names our question in the answer of a client of the second kind.
	rootsInput = "roots"
	// rootsWait is how long a client may take to say its roots.
	rootsWait = 5 * time.Second
)

// hasRoots reports whether the client of the call says that it has roots.
func hasRoots(ctx context.Context) bool {
	c, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	return ok && c.GetClientCapabilities().Roots != nil
}

// mustAskFirst reports whether this call is to be answered with the question for the roots.
func (s *Server) mustAskFirst(ctx context.Context, req mcp.CallToolRequest) bool {
	if !s.opts.AskRoots || !server.IsModernRequest(ctx) || !hasRoots(ctx) {
		return false
	}
	if _, answered := req.Params.InputResponses[rootsInput]; answered {
		return false
	}
	select {
	case <-s.opened:
		defer func() { s.opened <- struct{}{} }()
		return s.runner == nil
	default: // another call opens it now; if that fails this one must know the roots
		return true
	}
}

// withParams gives a result that asks for roots as clients read it. mcp-go leaves the parameters of
// roots/list out, since it takes none, and the client of the Go SDK (1.8.0) cannot read that.
func withParams(result any) any {
	r, ok := result.(*mcp.CallToolResult)
	if !ok || r.InputRequests[rootsInput].Roots == nil {
		return result
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(quoteJSON(r), &members) != nil {
		return result
	}
	members["inputRequests"] = json.RawMessage(`{"` + rootsInput + `":{"method":"roots/list","params":{}}}`)
	return members
}

// roots returns the URIs of the client's roots, nil if it has none. A client that has some and does not
// say which is an error: in the working directory its run would change what the client did not mean.
func (s *Server) roots(ctx context.Context, req mcp.CallToolRequest) ([]string, error) {
	if answer, ok := req.Params.InputResponses[rootsInput]; ok {
		if err := answer.DecodeFor(mcp.MethodListRoots); err != nil {
			return nil, rootsError(err)
		}
		return uris(answer.Roots), nil
	}
	if !hasRoots(ctx) || server.IsModernRequest(ctx) {
		return nil, nil
	}
	asking, cancel := context.WithTimeoutCause(ctx, rootsWait, fmt.Errorf("it did not answer within %s", rootsWait))
	defer cancel()
	answer, err := s.mcp.RequestRoots(asking, mcp.ListRootsRequest{})
	if err != nil {
		return nil, rootsError(err)
	}
	return uris(answer), nil
}

func uris(answer *mcp.ListRootsResult) []string {
	if answer == nil {
		return nil
	}
	var uris []string
	for _, root := range answer.Roots {
		uris = append(uris, root.URI)
	}
	return uris
}

func rootsError(err error) error {
	return fmt.Errorf("the workspace is not known: the client has roots, but does not say which: %w; hint: name the directory with --workspace DIR", err)
}
