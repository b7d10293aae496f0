package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// session is the client as mcp-go sees it: what it said of itself, and a way to ask it something.
type session struct {
	send          func(line []byte)
	notices       *notices
	notifications chan mcp.JSONRPCNotification
	initialized   atomic.Bool

	mu      sync.Mutex
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
	asked   int64
	answers map[string]chan message // of the requests that are open, by the key of their id
	gone    error                   // why no answer can come any more
}

var (
	_ server.SessionWithClientInfo      = (*session)(nil)
	_ server.SessionWithProtocolVersion = (*session)(nil)
	_ server.SessionWithRoots           = (*session)(nil)
	_ server.SessionWithElicitation     = (*session)(nil)
	_ server.SessionWithLogging         = (*session)(nil)
)

func newSession(send func([]byte), notices *notices) *session {
	return &session{
		send:          send,
		notices:       notices,
		notifications: make(chan mcp.JSONRPCNotification, 16),
		answers:       map[string]chan message{},
	}
}

// ask sends a request to the client and decodes its result.
func (s *session) ask(ctx context.Context, method mcp.MCPMethod, params, result any) error {
	s.mu.Lock()
	if s.gone != nil {
		s.mu.Unlock()
		return s.gone
	}
	s.asked++
	id := fmt.Appendf(nil, "%d", s.asked)
	came := make(chan message, 1)
	s.answers[idKey(id)] = came
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.answers, idKey(id))
		s.mu.Unlock()
	}()

	line, err := encode(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  mcp.MCPMethod   `json:"method"`
		Params  any             `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil {
		return err
	}
	s.send(line)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case m, ok := <-came:
		switch {
		case !ok:
			return errNoAnswer
		case m.Error != nil:
			return fmt.Errorf("%s: the client answers with an error: %s", method, firstChars(oneLine(string(m.Error)), 200))
		}
		return json.Unmarshal(m.Result, result)
	}
}

var errNoAnswer = errors.New("the client's input ended before it answered")

// answered takes the answer to a request of ours; one that nobody waits for is nothing.
func (s *session) answered(m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if came, ok := s.answers[idKey(m.ID)]; ok {
		delete(s.answers, idKey(m.ID))
		came <- m
	}
}

// hangUp says that no answer can come any more.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = errNoAnswer
	for key, came := range s.answers {
		delete(s.answers, key)
		close(came)
	}
}

// Initialize implements [server.ClientSession].
func (s *session) Initialize() { s.initialized.Store(true) }

// Initialized implements [server.ClientSession].
func (s *session) Initialized() bool { return s.initialized.Load() }

// NotificationChannel implements [server.ClientSession].
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notifications }

// SessionID implements [server.ClientSession]. A conversation over stdio has one client.
func (s *session) SessionID() string { return "stdio" }

// GetClientInfo implements [server.SessionWithClientInfo].
func (s *session) GetClientInfo() mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// SetClientInfo implements [server.SessionWithClientInfo].
func (s *session) SetClientInfo(info mcp.Implementation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = info
}

// GetClientCapabilities implements [server.SessionWithClientInfo].
func (s *session) GetClientCapabilities() mcp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caps
}

// SetClientCapabilities implements [server.SessionWithClientInfo].
func (s *session) SetClientCapabilities(caps mcp.ClientCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caps = caps
}

// ProtocolVersion implements [server.SessionWithProtocolVersion].
func (s *session) ProtocolVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// SetProtocolVersion is called by mcp-go when the version is known.
func (s *session) SetProtocolVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// SetLogLevel implements [server.SessionWithLogging].
func (s *session) SetLogLevel(level mcp.LoggingLevel) { s.notices.setLevel(level) }

// GetLogLevel implements [server.SessionWithLogging].
func (s *session) GetLogLevel() mcp.LoggingLevel { return s.notices.getLevel() }

// ListRoots implements [server.SessionWithRoots].
func (s *session) ListRoots(ctx context.Context, _ mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	var result mcp.ListRootsResult
	return &result, s.ask(ctx, mcp.MethodListRoots, nil, &result)
}

// RequestElicitation implements [server.SessionWithElicitation].
func (s *session) RequestElicitation(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	var result mcp.ElicitationResult
	return &result, s.ask(ctx, mcp.MethodElicitationCreate, req.Params, &result)
}
