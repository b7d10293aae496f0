package tools

import (
	"context"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// notices are the protocol's log messages (notifications/message), for what happened while no call was there to say it.
// They are sent only to a client that asked: until protocol 2025-11-25 by logging/setLevel, for the conversation; from
// 2026-07-28 on in the _meta of a request, for as long as that request is open.
type notices struct {
	mu    sync.Mutex
	send  func(line []byte)          // nil before there is a client
	level mcp.LoggingLevel           // the conversation's; "" sends nothing
	open  map[*mcp.LoggingLevel]bool // those of open requests
}

// connect has notices sent by send.
func (n *notices) connect(send func([]byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send = send
}

func (n *notices) setLevel(level mcp.LoggingLevel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.level = level
}

func (n *notices) getLevel() mcp.LoggingLevel {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.level
}

// during takes the level that a request asks for, until the function that it returns is called: before the
// request is answered, since nothing may come for it afterwards.
func (n *notices) during(ctx context.Context) (answered func()) {
	info := server.RequestProtocolInfoFromContext(ctx)
	if info == nil || info.LogLevel == "" {
		return func() {}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = map[*mcp.LoggingLevel]bool{}
	}
	n.open[&info.LogLevel] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, &info.LogLevel)
	}
}

// tell sends text, which becomes one line, if the client asked for its level; it is dropped if the client does
// not keep up.
func (n *notices) tell(level mcp.LoggingLevel, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wanted := level.ShouldSendTo(n.level)
	for least := range n.open {
		wanted = wanted || level.ShouldSendTo(*least)
	}
	if n.send == nil || !wanted {
		return
	}
	n.send(notification("notifications/message", map[string]any{
		"level": level, "logger": "airlock", "data": oneLine(text),
	}))
}

// Notice tells a client that asked for such messages what the user did that changes what runs may do.
func (s *Server) Notice(text string) { s.notices.tell(mcp.LoggingLevelInfo, text) }

// unheard tells of a job that ended while no call waited for it. j.mu is held.
func (s *Server) unheard(j *job) {
	if !j.free || j.waiting > 0 || s.ending.Load() {
		return
	}
	level := mcp.LoggingLevelInfo
	if j.result.IsError() {
		level = mcp.LoggingLevelWarning
	}
	r := j.result
	text := j.tool + " " + j.id + " ended while no call waited for it: " + r.ending()
	if r.WorkspaceLine != "" {
		text += "; " + r.WorkspaceLine
	}
	s.notices.tell(level, text)
}
