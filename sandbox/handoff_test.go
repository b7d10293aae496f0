package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var messages = []message{
	{Config: &config{
		Steps:  plan(Spec{Home: "/root", Mounts: []Mount{{Kind: MountBind, Source: "/a\xff\\x", Target: "/a\xff\\x"}}}),
		Argv:   []wire{"sh", "-c", "é\xe9\n"},
		Env:    []wire{"A=\\"},
		Dir:    "/",
		Limits: Limits{Processes: 3, CPU: 0.5, Strict: true},
	}},
	{Base: &base{Steps: []step{{Do: doDev, Target: "/dev"}}, Hostname: "airlock", Egress: &Egress{RedirectPort: 1, ProxyPort: 2}, Shell: &bash{"/bin/bash", []wire{"A=\xff"}}}},
	{Failed: &failure{Op: "mount", Path: "/\xfe", Errno: 1, Text: "operation not permitted", Hint: "h"}},
	{Built: &struct{}{}},
	{Started: &struct{}{}},
	{Status: &status{Code: 127, StartError: "no such file or directory", Ended: 2}},
	{Scratch: &scratchUse{Bytes: 4096}},
}

func TestHandoffRoundTrip(t *testing.T) {
	var stream bytes.Buffer
	for _, m := range messages {
		if err := send(&stream, m); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range messages {
		got, err := receive(&stream)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-sent +received):\n%s", diff)
		}
	}
	if _, err := receive(&stream); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v, want EOF", err)
	}
}

func TestHandoffRefuses(t *testing.T) {
	framed := func(body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
	}
	if _, err := receive(strings.NewReader(framed(`{"built":{}}`))); err != nil {
		t.Fatalf("control: %v", err)
	}
	for _, test := range []struct{ name, stream, want string }{
		{"unknown field", framed(`{"built":{},"more":1}`), `hand-off: json: unknown field "more"`},
		{"nothing", framed(`{}`), "hand-off: a message holds 0 things, not one"},
		{"two things", framed(`{"built":{},"started":{}}`), "hand-off: a message holds 2 things, not one"},
		{"more than one value", framed(`{"built":{}}{}`), "hand-off: a message is followed by more"},
		{"cut off", framed(`{"built":{}}`)[:9], "hand-off: a message was cut off: unexpected EOF"},
		{"too long", "\x7f\xff\xff\xff", "hand-off: a message of 2147483647 bytes; 16777216 is the most"},
		{"bad escape", framed(`{"config":{"steps":[],"argv":["\\q"],"env":[],"dir":"","limits":{}}}`), `hand-off: bad escape in "\\q"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := receive(strings.NewReader(test.stream)); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	if err := send(io.Discard, message{Config: &config{Dir: wire(strings.Repeat("x", maxMessage))}}); err == nil {
		t.Error("a message longer than the limit was sent")
	}
}

func TestFailureKeepsTheCause(t *testing.T) {
	sent := &SetupError{Op: "mount overlay on", Path: "/w\xff", Err: syscall.EPERM, Hint: "mend"}
	body, err := json.Marshal(message{Failed: newFailure(sent)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := decode(body)
	if err != nil {
		t.Fatal(err)
	}
	got := m.Failed.setupError()
	if got.Error() != sent.Error() || got.Hint != sent.Hint || !errors.Is(got, syscall.EPERM) {
		t.Errorf("got %v (hint %q), want %v (hint %q)", got, got.Hint, sent, sent.Hint)
	}
}

// What init accepts, it must have understood: encoded again, it says the same.
func FuzzDecode(f *testing.F) {
	for _, m := range messages {
		body, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"config":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decode(body)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		n, err := decode(again)
		if err != nil {
			t.Fatalf("%s, decoded and encoded, is %s: %v", body, again, err)
		}
		third, err := json.Marshal(n)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%s became %s (%v)", again, third, err)
		}
	})
}

func FuzzWire(f *testing.F) {
	for _, s := range []string{"", "/a b", `\`, `\x41`, "\xff", "é\u2028\ufffd", "a\x00\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(wire(s))
		if err != nil {
			t.Fatal(err)
		}
		var got wire
		if err := json.Unmarshal(b, &got); err != nil || string(got) != s {
			t.Fatalf("%q became %q by way of %s (%v)", s, got, b, err)
		}
	})
}

// A stream is read as far as its messages go, whatever follows, and never holds more memory than came.
func FuzzReceive(f *testing.F) {
	for _, m := range messages {
		var b bytes.Buffer
		if err := send(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(append(b.Bytes(), b.Bytes()[:b.Len()/2]...))
	}
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{1, 0, 0, 0, '{'})
	f.Add([]byte{255, 255, 255, 255, '{', '}'})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bytes.NewReader(stream)
		for {
			before := r.Len()
			m, err := receive(r)
			if err != nil {
				if before > 0 && err == io.EOF {
					t.Fatalf("%d bytes were left, and the stream was taken to have ended", before)
				}
				return
			}
			var again bytes.Buffer
			if err := send(&again, m); err != nil {
				t.Fatalf("a message that was received can't be sent: %v", err)
			}
			if n, err := receive(&again); err != nil || again.Len() > 0 {
				t.Fatalf("sent again, it is %+v with %d bytes after it (%v)", n, again.Len(), err)
			}
		}
	})
}
