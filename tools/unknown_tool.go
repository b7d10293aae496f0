package tools

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"airlock/internal/spelling"
)

// hooks make the text that answers a call of a tool that is not there: mcp-go's names none that is. Its code stays.
func (s *Server) hooks() *server.Hooks {
	h := &server.Hooks{}
	h.AddOnError(func(ctx context.Context, _ any, _ mcp.MCPMethod, message any, err error) {
		request, ok := message.(*mcp.CallToolRequest)
		if this, called := ctx.Value(callKey{}).(call); ok && called && errors.Is(err, server.ErrToolNotFound) {
			*this.failed = s.unknownTool(request.Params.Name)
		}
	})
	return h
}

// unknownTool says that a tool is not offered, which was meant, and which are.
func (s *Server) unknownTool(name string) string {
	var there []string
	for _, known := range Names() {
		if !s.opts.Tools.disables(known) {
			there = append(there, known)
		} else if known == name {
			return name + " is disabled (tools.disable)"
		}
	}
	text := shownName(name) + ": unknown tool"
	near := spelling.Nearest(name, there)
	switch {
	case near != "":
		return text + "; did you mean " + near + "? There are " + list(there)
	case len(there) == 0:
		return text + "; all are disabled (tools.disable)"
	}
	return text + "; there are " + list(there)
}
