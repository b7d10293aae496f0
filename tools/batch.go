package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// batch serves a line that holds several messages. Their answers come in one line, when the last of
// them is there.
func (c *conn) batch(ctx context.Context, line []byte) {
	var messages []json.RawMessage
	if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
		c.out.put(failure(nil, mcp.INVALID_REQUEST, "a batch without a message"))
		return
	}
	b := &answers{left: len(messages), send: c.out.put}
	for _, m := range messages {
		c.message(ctx, m, b.add)
	}
}

// answers gathers the answers to the messages of a batch.
type answers struct {
	send func(line []byte)

	mu    sync.Mutex
	left  int
	lines [][]byte
}

// add takes the answer to one message, nil if there is none.
func (b *answers) add(line []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if line != nil {
		b.lines = append(b.lines, line)
	}
	if b.left--; b.left > 0 || len(b.lines) == 0 {
		return
	}
	b.send(append(append([]byte{'['}, bytes.Join(b.lines, []byte{','})...), ']'))
}
