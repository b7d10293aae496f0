// Package mcpclient is the smallest MCP client that drives a server over its standard input and output:
// enough for airlock's demonstration and benchmark, which stand outside and speak only the protocol.
//
// It imports nothing of airlock and no MCP library, so that neither can hide a mistake of the server.
package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// protocolVersion is the revision that the client asks for.
const protocolVersion = "2025-06-18"

// closeWithin bounds how long a server may take to end once its input has ended.
const closeWithin = 10 * time.Second

// Client is a session with one server. Its methods may be called from several goroutines.
type Client struct {
	stop func() error // ends the server; called once
	in   io.WriteCloser

	mu       sync.Mutex // guards what follows, and writes to in
	next     int64
	waiting  map[int64]chan message
	progress map[int64]func(string)
	ended    error // why no more answers come
}

// message is any JSON-RPC message that a server sends.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts the server's command and opens a session. The command's Stdin and Stdout must be unset.
func Start(ctx context.Context, cmd *exec.Cmd) (*Client, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := newClient(in, out)
	c.stop = func() error {
		late := time.AfterFunc(closeWithin, func() { cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	}
	if err := c.initialize(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func newClient(in io.WriteCloser, out io.Reader) *Client {
	c := &Client{
		stop:     func() error { return nil },
		in:       in,
		waiting:  map[int64]chan message{},
		progress: map[int64]func(string){},
	}
	go c.read(out)
	return c
}

func (c *Client) initialize(ctx context.Context) error {
	_, err := c.request(ctx, "initialize", map[string]any{
		"protocolVersion": protocolVersion,
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "airlock-mcpclient", "version": "1"},
	}, nil)
	if err != nil {
		return err
	}
	return c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// Close ends the session as a client does, by ending the server's input, and waits for the server. A
// server that has not ended after ten seconds is killed.
func (c *Client) Close() error {
	return errors.Join(c.in.Close(), c.stop())
}

// Result is what a tool answered: the text that a model reads, and the structure that says the same.
type Result struct {
	Text       string
	IsError    bool
	Structured json.RawMessage
}

// CallTool calls a tool and waits for its result. If progress is not nil, the call asks for progress
// and the function gets each message, in order, on the goroutine that reads.
func (c *Client) CallTool(ctx context.Context, name string, args map[string]any, progress func(message string)) (Result, error) {
	raw, err := c.request(ctx, "tools/call", map[string]any{"name": name, "arguments": args}, progress)
	if err != nil {
		return Result{}, err
	}
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		IsError    bool            `json:"isError"`
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return Result{}, fmt.Errorf("result of %s: %w", name, err)
	}
	result := Result{IsError: r.IsError, Structured: r.Structured}
	for _, part := range r.Content {
		if part.Type == "text" {
			result.Text += part.Text
		}
	}
	return result, nil
}

func (c *Client) request(ctx context.Context, method string, params map[string]any, progress func(string)) (json.RawMessage, error) {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	if c.ended != nil {
		defer c.mu.Unlock()
		return nil, c.ended
	}
	c.waiting[id] = answer
	if progress != nil {
		c.progress[id] = progress
		params["_meta"] = map[string]any{"progressToken": id}
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, id)
		delete(c.progress, id)
	}()

	if err := c.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case m, ok := <-answer:
		switch {
		case !ok:
			c.mu.Lock()
			defer c.mu.Unlock()
			return nil, fmt.Errorf("%s: %w", method, c.ended)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: server error %d: %s", method, m.Error.Code, m.Error.Message)
		}
		return m.Result, nil
	}
}

func (c *Client) write(m map[string]any) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// read hands every message of the server to whom it is for, until its output ends. A line that is not
// JSON breaks the protocol and ends the session.
func (c *Client) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			c.end(fmt.Errorf("the server ended: %w", err))
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			c.end(fmt.Errorf("the server wrote a line that is not JSON: %.100q", line))
			io.Copy(io.Discard, out) // so that it can go on to its end
			return
		}
		c.deliver(m)
	}
}

func (c *Client) deliver(m message) {
	if m.Method == "notifications/progress" {
		var p struct {
			ProgressToken int64  `json:"progressToken"`
			Message       string `json:"message"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			return
		}
		c.mu.Lock()
		f := c.progress[p.ProgressToken]
		c.mu.Unlock()
		if f != nil {
			f(p.Message)
		}
		return
	}
	var id int64
	if m.Method != "" || json.Unmarshal(m.ID, &id) != nil {
		return // a request or a notification that this client has no use for
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.waiting[id]; ok {
		delete(c.waiting, id)
		answer <- m
	}
}

func (c *Client) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = why
	for id, answer := range c.waiting {
		delete(c.waiting, id)
		close(answer)
	}
}
