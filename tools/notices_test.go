package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// notice is a log message as a client decodes it.
type notice struct {
	Method string
	Params struct{ Level, Logger, Data string }
}

// alone has a run begin that no call waits for.
func (c *client) alone(s *Server, f *fakeRunner, request string) *job {
	c.t.Helper()
	c.send(shellWith(request, `"command":"print","wait_seconds":0`))
	id := c.goesOn(c.answer())
	<-f.busy
	j, err := s.jobs.find(id)
	if err != nil {
		c.t.Fatal(err)
	}
	return j
}

// ended has it end.
func (j *job) ended(f *fakeRunner) {
	f.print <- "end"
	<-j.done
}

// A client that asked for it hears that a run ended for which no call waits, and nothing else.
func TestNotices(t *testing.T) {
	f := newFakeRunner()
	s := New(testOptions(f))
	c := connect(t, s)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	c.next()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.alone(s, f, "1").ended(f)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}`)
	if line := c.next(); !strings.Contains(line, `"result":{}`) { // of the run before nothing was told
		t.Fatalf("a level is answered by %s", line)
	}
	j := c.alone(s, f, "3")
	j.ended(f)
	var n notice
	if err := json.Unmarshal([]byte(c.next()), &n); err != nil {
		t.Fatal(err)
	}
	want := "run_shell " + j.id + " ended while no call waited for it: exit=0"
	if n.Method != "notifications/message" || n.Params.Level != "info" || n.Params.Logger != "airlock" || !strings.HasPrefix(n.Params.Data, want) {
		t.Errorf("got %+v, want %q", n, want)
	}
	// One that a call waits for tells nothing more, and neither does one that is not worth the level.
	j = c.alone(s, f, "4")
	c.send(shellWith("5", fmt.Sprintf(`"run_id":%q`, j.id)))
	for waits := false; !waits; {
		j.mu.Lock()
		waits = j.waiting > 0
		j.mu.Unlock()
	}
	j.ended(f)
	if r := c.answer(); string(r.ID) != "5" {
		t.Errorf("got %+v", r)
	}
	c.send(`{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"warning"}}`)
	c.next()
	c.alone(s, f, "8").ended(f)
	c.send(`{"jsonrpc":"2.0","id":10,"method":"logging/setLevel","params":{"level":"loud"}}`)
	if line := c.next(); !strings.Contains(line, `"error"`) {
		t.Errorf("a level that is none: %s", line)
	}
	if rest, err := c.rest(); len(rest) > 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
}

// From protocol 2026-07-28 on a message may be sent for an open request that asks for it, before its answer.
func TestNoticesOfARequest(t *testing.T) {
	f := newFakeRunner()
	opts := testOptions(f)
	opts.Policy.Order = "parallel"
	s := New(opts)
	c := connect(t, s)
	call := func(id, level string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":"print"},"_meta":{
"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}` + level + `}}}`
	}
	for _, level := range []string{"", `,"io.modelcontextprotocol/logLevel":"info"`, `,"io.modelcontextprotocol/logLevel":"error"`} {
		c.send(strings.ReplaceAll(call("1", level), "\n", ""))
		<-f.busy
		s.Notice("something\nhappened")
		f.print <- "end"
		line := c.next()
		if got := strings.Contains(line, `"method":"notifications/message"`) && strings.Contains(line, `"data":"something; happened"`); got != strings.Contains(level, "info") {
			t.Errorf("with %q: %s", level, line)
		} else if got {
			c.next()
		}
		s.Notice("too late")
	}
	if rest, err := c.rest(); len(rest) > 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
}
