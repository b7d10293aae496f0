package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
)

func TestAsking(t *testing.T) {
	sent := make(chan []byte, 10)
	s := newSession(func(line []byte) { sent <- line }, &notices{})
	// answer takes the next request and answers it with the rest of a message.
	answer := func(rest string) {
		m, err := readMessage(<-sent)
		if err != nil {
			t.Error(err)
		}
		s.answered(message{ID: json.RawMessage(`77`), Result: json.RawMessage(`{}`)}) // nobody's
		a, err := readMessage([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + rest + `}`))
		if err != nil {
			t.Error(err)
		}
		s.answered(a)
		s.answered(a) // a second one is nothing
	}

	go answer(`"result":{"roots":[{"uri":"file:///a"}]}`)
	roots, err := s.ListRoots(t.Context(), mcp.ListRootsRequest{})
	if err != nil || len(roots.Roots) != 1 || roots.Roots[0].URI != "file:///a" {
		t.Errorf("roots are %+v, %v", roots, err)
	}
	go answer(`"result":{"action":"decline"}`)
	elicited, err := s.RequestElicitation(t.Context(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "?"}})
	if err != nil || elicited.Action != mcp.ElicitationResponseActionDecline {
		t.Errorf("the answer is %+v, %v", elicited, err)
	}
	go answer(`"error":{"code":-32601,"message":"no such method"}`)
	if _, err := s.ListRoots(t.Context(), mcp.ListRootsRequest{}); err == nil || !strings.Contains(err.Error(), "no such method") {
		t.Errorf("an error gives %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-sent; cancel() }()
	if _, err := s.ListRoots(ctx, mcp.ListRootsRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends gives %v", err)
	}
	go func() { <-sent; s.hangUp() }()
	for range 2 { // while it waits, and afterwards
		if _, err := s.ListRoots(t.Context(), mcp.ListRootsRequest{}); !errors.Is(err, errNoAnswer) {
			t.Errorf("an input that ends gives %v", err)
		}
	}
	if len(s.answers) != 0 {
		t.Errorf("%d requests are left open", len(s.answers))
	}
}
