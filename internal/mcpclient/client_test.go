package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serve answers each request by the reply that the function makes of its id and method.
func serve(t *testing.T, reply func(id json.Number, method string) string) *Client {
	t.Helper()
	toServer, in := io.Pipe()
	out, fromServer := io.Pipe()
	go func() {
		defer fromServer.Close()
		lines := bufio.NewScanner(toServer)
		for lines.Scan() {
			var m struct {
				ID     json.Number `json:"id"`
				Method string      `json:"method"`
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Errorf("the client wrote %q: %v", lines.Text(), err)
			}
			if m.ID != "" {
				io.WriteString(fromServer, reply(m.ID, m.Method))
			}
		}
	}()
	c := newClient(in, out)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCallTool(t *testing.T) {
	c := serve(t, func(id json.Number, method string) string {
		if method == "initialize" {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", id)
		}
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%[1]s,"message":"one"}}
{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%[1]s,"message":"two"}}
{"jsonrpc":"2.0","id":"of another","result":{}}
{"jsonrpc":"2.0","id":%[1]s,"result":{"isError":true,"content":[{"type":"text","text":"exit=7"}],"structuredContent":{"exit_code":7}}}
`, id)
	})
	if err := c.initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	var progress []string
	got, err := c.CallTool(t.Context(), "run_shell", map[string]any{"command": "exit 7"}, func(m string) { progress = append(progress, m) })
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Text: "exit=7", IsError: true, Structured: json.RawMessage(`{"exit_code":7}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "two"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestFailures(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name, reply, want string
		ctx               context.Context
	}{
		{"protocol error", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown tool"}}` + "\n", "server error -32602: unknown tool", t.Context()},
		{"banner on stdout", "Welcome!\n", `a line that is not JSON: "Welcome!\n"`, t.Context()},
		{"context", "", "context canceled", ended},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, func(json.Number, string) string { return tt.reply })
			_, err := c.CallTool(tt.ctx, "run_shell", map[string]any{}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want one that holds %q", err, tt.want)
			}
		})
	}
}
