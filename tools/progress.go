package tools

import (
	"encoding/json"
	"sync"
	"time"
)

// progress tells a client that asked for it, about once a second, that its call goes on, with the
// last line of the output. A nil progress tells nothing.
//
// After stop has returned nothing more is sent: the result of the call can follow.
type progress struct {
	token json.RawMessage
	every time.Duration // 0: every line at once, and nothing while there are none
	send  func(line []byte)

	mu      sync.Mutex
	text    string
	n       int64 // of the last notification; the protocol wants numbers that rise
	sent    time.Time
	timer   *time.Timer
	stopped bool
}

// startProgress begins to tell of a call that waits for its turn.
func startProgress(token json.RawMessage, every time.Duration, send func([]byte)) *progress {
	if token == nil {
		return nil
	}
	p := &progress{token: token, every: every, send: send, text: "waiting for the call before", sent: time.Now()}
	if every > 0 {
		p.timer = time.AfterFunc(every, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.tell()
		})
	}
	return p
}

// take says that the run starts, and returns what is told its last line, nil for a nil progress.
func (p *progress) take() func(line string) {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = "running"
	return p.line
}

func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	if time.Since(p.sent) >= p.every {
		p.tell()
	}
}

// tell sends a notification. p.mu is held.
func (p *progress) tell() {
	if p.stopped {
		return
	}
	p.n++
	p.sent = time.Now()
	p.send(notification("notifications/progress", map[string]any{
		"progressToken": p.token,
		"progress":      p.n,
		"message":       firstChars(oneLine(p.text), maxLastLine),
	}))
	if p.timer != nil {
		p.timer.Reset(p.every)
	}
}

func (p *progress) stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
