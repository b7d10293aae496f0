package tools

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Without an answer the working directory would be a guess, and a run changes what it is in.
func TestRootsThatAreNotSaid(t *testing.T) {
	for name, answer := range map[string]string{
		"an error":       `"error":{"code":-32603,"message":"no\nexit=0"}`,
		"not roots":      `"result":{"roots":"x"}`,
		"not an object":  `"result":[]`,
		"the URI is not": `"result":{"roots":[{"uri":5}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions(newFakeRunner())
			opts.AskRoots = true
			opts.Open = func(_ context.Context, roots []string) (Runner, error) {
				t.Errorf("opened with %q", roots)
				return newFakeRunner(), nil
			}
			c := connect(t, New(opts))
			c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
			c.next()
			c.send(shell("2", "echo x"))
			asked, err := readMessage([]byte(c.next()))
			if err != nil || asked.Method != "roots/list" {
				t.Fatalf("asked %+v, %v", asked, err)
			}
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, asked.ID, answer))
			const want = "refused: the workspace is not known: the client has roots, but does not say which: "
			if text := decode(t, c.next()).text(); !strings.HasPrefix(text, want) || !strings.Contains(text, "--workspace DIR") {
				t.Errorf("the call gives %q", text)
			}
		})
	}
}

func TestBatchIsBounded(t *testing.T) {
	c := connect(t, New(testOptions(newFakeRunner())))
	c.send("[1" + strings.Repeat(",1", maxBatch) + "]")
	if line := c.next(); !strings.Contains(line, "a batch of more than 10,000 messages") {
		t.Errorf("the answer is %.300s", line)
	}
	c.send("[1" + strings.Repeat(",1", maxBatch-1) + "]")
	if line := c.next(); strings.Count(line, "not a JSON-RPC message") != maxBatch {
		t.Errorf("the answer is %.300s", line)
	}
}
