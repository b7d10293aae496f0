package tools

import (
	"fmt"
	"strings"
	"testing"
)

func TestIDsComeBackAsTheyWere(t *testing.T) {
	c := connect(t, New(testOptions(newFakeRunner())))
	for _, id := range []string{`9007199254740993`, `123456789012345678901234567890`, `-1`, `0`, `1.0`, `1.5e3`, `""`, `"1"`, `"a\u0041\n"`, `"\ud83d\ude00"`} {
		for _, request := range []string{ping(id), shell(id, "echo x"), shell(id, ""), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"no/such"}`, id)} {
			c.send(request)
			line := c.next()
			if !strings.Contains(line, `"id":`+id+`,`) {
				t.Errorf("the id %s came back in %s", id, line)
			}
		}
	}
}

func TestOneSpellingOfAnIDCancelsAnother(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	for id, other := range map[string]string{`1`: `1.0`, `"a"`: `"\u0061"`, `9007199254740993`: `9007199254740993`} {
		c.send(shell(id, "block"))
		<-f.busy
		c.send(cancelled(`"1"`) + "\n" + cancelled(`9007199254740992`)) // others
		c.send(ping("99"))
		if r := decode(t, c.next()); string(r.ID) != "99" {
			t.Fatalf("got %+v", r)
		}
		c.send(cancelled(other))
	}
	if lines, err := c.rest(); len(lines) > 0 || err != nil {
		t.Errorf("got %q, %v", lines, err)
	}
}

func TestDuplicateID(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "block"))
	<-f.busy
	c.send(shell("1.0", "echo twice"))
	if r := decode(t, c.next()); r.Error == nil || r.Error.Code != -32600 || !strings.Contains(r.Error.Message, "id") {
		t.Errorf("got %+v, want a refusal", r)
	}
	c.send(cancelled("1"))
	if lines, err := c.rest(); len(lines) > 0 || err != nil {
		t.Errorf("got %q, %v", lines, err)
	}
}
