package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// outputURI names the output of a run as a resource.
const outputURI = "airlock://runs/{id}/output"

// maxResource is how much of an output one resource holds, in bytes.
const maxResource = 8 << 20

// outputTemplate is the resource as clients see it.
func outputTemplate() mcp.ResourceTemplate {
	return mcp.NewResourceTemplate(outputURI, "output of a run",
		mcp.WithTemplateDescription("All that a run of this conversation has printed so far, by its run_id."),
		mcp.WithTemplateMIMEType("text/plain"))
}

// readOutput serves a read of it.
func (s *Server) readOutput(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	id, whole := strings.CutSuffix(strings.TrimPrefix(req.Params.URI, "airlock://runs/"), "/output")
	if !whole {
		return nil, fmt.Errorf("%s: there is only %s", firstChars(oneLine(req.Params.URI), 200), outputURI)
	}
	j, err := s.jobs.find(id)
	if err != nil {
		return nil, err
	}
	text, err := j.whole()
	if err != nil {
		return nil, err
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: text}}, nil
}

// whole is the output so far. Where it is too long for a resource, its last line says how to read on.
func (j *job) whole() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.out == nil {
		return "", nil
	}
	var b strings.Builder
	for offset := int64(0); ; {
		text, next, total, err := j.out.From(offset, j.isDone())
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		switch {
		case next >= total || next == offset:
			return b.String(), nil
		case b.Len() >= maxResource:
			fmt.Fprintf(&b, "\n… %s of %s bytes; %s with run_id=%q and offset=%d reads on …\n", grouped(next), grouped(total), j.tool, j.id, next)
			return b.String(), nil
		}
		offset = next
	}
}
