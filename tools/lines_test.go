package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll gives the lines of in; one that is too long is "id ID" or "long".
func readAll(t *testing.T, in io.Reader, max int) []string {
	t.Helper()
	r := newLineReader(in, max)
	var got []string
	for {
		line, err := r.next()
		long := new(longLineError)
		switch {
		case errors.As(err, &long) && long.id != nil:
			got = append(got, "id "+string(long.id))
		case errors.As(err, &long):
			got = append(got, "long")
		case errors.Is(err, io.EOF):
			return got
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string(line))
		}
	}
}

func TestLines(t *testing.T) {
	long := func(head, tail string) string { return head + strings.Repeat("x", 200_000) + tail }
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"none":                {"", nil},
		"one, not terminated": {"a", []string{"a"}},
		"some":                {"a\n\nb\r\n", []string{"a", "", "b\r"}},
		"as long as may be":   {strings.Repeat("x", 100_000) + "\n" + strings.Repeat("y", 100_000), []string{strings.Repeat("x", 100_000), strings.Repeat("y", 100_000)}},
		"one byte more":       {strings.Repeat("x", 100_001) + "\na", []string{"long", "a"}},
		"the id before":       {long(`{"id": 1 ,"method":"m","params":{"id":2,"s":"`, "\"}}\nnext"), []string{"id 1", "next"}},
		"the id after":        {long(`{"method":"m","params":{"id":2,"s":"`, `\"}","a":[{"id":3}]},"id":"a\"b"}`+"\n"), []string{`id "a\"b"`}},
		"no id":               {long(`{"method":"m","params":{"id":2,"s":"`, `"}}`), []string{"long"}},
		"an id that is none":  {long(`{"id":{"id":5},"method":"m","params":"`, `"}`), []string{"long"}},
		"not JSON":            {long(`]}"id":7,`, ``), []string{"long"}},
	} {
		if got := readAll(t, strings.NewReader(c.in), 100_000); !slices.Equal(got, c.want) {
			t.Errorf("%s: %.100q", name, got)
		}
		if got := readAll(t, iotest.HalfReader(strings.NewReader(c.in)), 100_000); !slices.Equal(got, c.want) {
			t.Errorf("%s, in parts: %.100q", name, got)
		}
	}
}

func TestLongAnswersAreNotAnswered(t *testing.T) {
	for in, want := range map[string]bool{
		`{"id":1,"method":"m","p":""}`:   true,
		`{"id":1,"result":{"method":1}}`: false,
		`{"method":"m"}`:                 false,
	} {
		s := &idScanner{}
		s.write([]byte(in))
		if s.isRequest() != want {
			t.Errorf("%s is a request: %v", in, !want)
		}
	}
}

// Lines are what bytes.Split gives, and the id of one that is too long is the one that decoding finds.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"method\":\"m\"}\n\n{\"method\":\"x\",\"params\":{\"id\":2},\"id\":\"q\\\"\"}\nlast"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const max = 16
		got := readAll(t, iotest.OneByteReader(bytes.NewReader(in)), max)
		lines := bytes.Split(in, []byte("\n"))
		if len(lines[len(lines)-1]) == 0 {
			lines = lines[:len(lines)-1]
		}
		if len(got) != len(lines) {
			t.Fatalf("%d lines, want %d", len(got), len(lines))
		}
		for i, line := range lines {
			var m message
			switch {
			case len(line) <= max:
				if got[i] != string(line) {
					t.Fatalf("line %d is %q, want %q", i, got[i], line)
				}
			case json.Unmarshal(line, &m) == nil && exactMembers(line) && idKey(m.ID) != "" && len(m.ID) < maxToken:
				if got[i] != "id "+string(m.ID) {
					t.Fatalf("line %d is %q, want the id %s", i, got[i], m.ID)
				}
			case got[i] != "long" && !strings.HasPrefix(got[i], "id "):
				t.Fatalf("line %d is %q, and is too long", i, got[i])
			}
		}
	})
}

// exactMembers reports whether no member of the object is "id" in another spelling, which decoding
// takes and the scanner does not.
func exactMembers(line []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil {
		return false
	}
	for name := range members {
		if name != "id" && strings.EqualFold(name, "id") {
			return false
		}
	}
	return !bytes.Contains(line, []byte(`\u`))
}
