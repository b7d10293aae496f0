package tools

import (
	"fmt"
	"testing"
	"time"
)

func TestProgressBeforeTheResult(t *testing.T) {
	for _, token := range []string{`"tok\u0065n"`, `9007199254740993`, `1.0`} {
		s := New(testOptions(newFakeRunner()))
		s.every = 0 // each line is told
		c := connect(t, s)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":"lines 1000"},"_meta":{"progressToken":%s}}}`, token))
		for i := range 1000 {
			r := decode(t, c.next())
			if r.Method != "notifications/progress" || string(r.Params.ProgressToken) != token ||
				r.Params.Progress != int64(i+1) || r.Params.Message != fmt.Sprintf("line %d", i) {
				t.Fatalf("notification %d is %+v", i, r)
			}
		}
		if r := decode(t, c.next()); string(r.ID) != "1" {
			t.Errorf("after the progress came %+v, want the result", r)
		}
		if lines, err := c.rest(); len(lines) > 0 || err != nil {
			t.Errorf("after the result came %q, %v", lines, err)
		}
	}
}

func TestProgressWithoutOutput(t *testing.T) {
	s := New(testOptions(newFakeRunner()))
	s.every = 20 * time.Millisecond
	c := connect(t, s)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_shell","arguments":{"command":"sleep 300ms"},"_meta":{"progressToken":7}}}`)
	lines, err := c.rest()
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) < 4 || len(lines) > 20 {
		t.Errorf("%d lines, want a notification every 20 ms or so for 300 ms", len(lines))
	}
	if r := decode(t, lines[0]); r.Params.Message != "running" {
		t.Errorf("the first message is %q", r.Params.Message)
	}
}

func TestNoProgressWithoutToken(t *testing.T) {
	s := New(testOptions(newFakeRunner()))
	s.every = 0
	c := connect(t, s)
	c.send(shell("1", "lines 10"))
	if lines, err := c.rest(); err != nil || len(lines) != 1 {
		t.Errorf("got %q, %v; want the result alone", lines, err)
	}
}
