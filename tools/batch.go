package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxBatch is how many messages a batch may hold. What one of two bytes is answered with is many times as
// long, and no other message is read meanwhile.
const maxBatch = 10_000

// batch serves a line that holds several messages. Their answers come in one line, when the last of
// them is there.
func (c *conn) batch(ctx context.Context, line []byte) {
	var messages []json.RawMessage
	if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
		c.out.put(failure(nil, mcp.INVALID_REQUEST, "a batch without a message"))
		return
	}
	if len(messages) > maxBatch {
		c.out.put(failure(nil, mcp.INVALID_REQUEST, fmt.Sprintf("a batch of more than %s messages", grouped(maxBatch))))
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
