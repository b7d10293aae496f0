package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTerminal answers what it is asked.
type fakeTerminal struct {
	io.Reader
	bytes.Buffer
}

func (f *fakeTerminal) Read(p []byte) (int, error) { return f.Reader.Read(p) }
func (f *fakeTerminal) Close() error               { return nil }

func trustSetup(t *testing.T, policy string) setup {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := places{home: base + "/home", homes: []string{base + "/home"}, config: base + "/c/airlock", state: base + "/s/airlock", cache: base + "/k/airlock"}
	ws := filepath.Join(base, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	writePolicy(t, ws, policy)
	return setup{places: p, user: userOf(t, ""), rules: workspaceRules{places: p}, workspace: ws}
}

func writePolicy(t *testing.T, ws, policy string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(ws, policyName), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
}

const wide = "[sandbox]\nread = [\"/srv/\\u001b[31mdata\"]\n[limits]\nruns = 2\n"

func TestTrust(t *testing.T) {
	s := trustSetup(t, wide)
	if _, err := s.openHere(); err == nil || strings.Contains(err.Error(), "was trusted") {
		t.Fatalf("a policy that widens, without trust: %v", err)
	}
	var out bytes.Buffer
	tty := &fakeTerminal{Reader: strings.NewReader("yes\n")}
	if err := trust(s, &out, func() (io.ReadWriteCloser, error) { return tty, nil }); err != nil {
		t.Fatal(err)
	}
	question := tty.String()
	for _, part := range []string{"WIDENS  sandbox.read\n            from  []\n            to    [\"/srv/\\u001B[31mdata\"]", "          limits.runs\n", "Type yes: "} {
		if !strings.Contains(question, part) {
			t.Errorf("the question lacks %q:\n%s", part, question)
		}
	}
	o, err := s.openHere()
	if err != nil || !o.trusted || len(o.settings.Sandbox.Read) != 1 {
		t.Fatalf("after trust: %+v, %v", o, err)
	}
	info, err := os.Stat(s.places.state)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the state directory: %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(s.places.state + "/trust/new-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	// One byte more is another policy.
	writePolicy(t, s.workspace, wide+"#")
	const changed = "; the file was trusted, and has changed since"
	if _, err := s.openHere(); err == nil || !strings.Contains(err.Error(), changed) {
		t.Errorf("a changed policy: %v, want %q", err, changed)
	}
	writePolicy(t, s.workspace, wide)
	if _, err := s.openHere(); err != nil {
		t.Errorf("the policy as it was trusted: %v", err)
	}

	// The same content elsewhere is not trusted, nor is it here once the directory is another.
	elsewhere := filepath.Join(filepath.Dir(s.workspace), "ws2")
	if err := os.Rename(s.workspace, elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(elsewhere); err == nil {
		t.Error("the same content in another place is trusted")
	}
}

// What would have no effect is said before anybody is asked for it.
func TestTrustTellsOfIdle(t *testing.T) {
	tty := &fakeTerminal{Reader: strings.NewReader("no\n")}
	_ = trust(trustSetup(t, "[network]\nallow = [\"a.test\"]\n"), io.Discard, func() (io.ReadWriteCloser, error) { return tty, nil })
	if want := "\n.airlock.toml:2: network.allow: has no effect, since "; !strings.Contains(tty.String(), want) {
		t.Errorf("the question lacks %q:\n%s", want, tty)
	}
}

func TestTrustNeedsYes(t *testing.T) {
	for _, answer := range []string{"", "\n", "yo\n", "no\n", "yes please\n"} {
		s := trustSetup(t, wide)
		err := trust(s, io.Discard, func() (io.ReadWriteCloser, error) { return &fakeTerminal{Reader: strings.NewReader(answer)}, nil })
		if err == nil || err.Error() != "not trusted: the answer was not yes" {
			t.Errorf("answer %q: %v", answer, err)
		}
		if _, err := s.openHere(); err == nil {
			t.Errorf("answer %q: trusted", answer)
		}
	}
}

func TestTrustTakesAYes(t *testing.T) {
	for _, answer := range []string{"y\n", "Y\n", "yes\n", " YES \n", "yes"} {
		s := trustSetup(t, wide)
		if err := trust(s, io.Discard, func() (io.ReadWriteCloser, error) { return &fakeTerminal{Reader: strings.NewReader(answer)}, nil }); err != nil {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
}

func TestTrustNeedsTerminal(t *testing.T) {
	s := trustSetup(t, wide)
	err := trust(s, io.Discard, func() (io.ReadWriteCloser, error) {
		return nil, &os.PathError{Op: "open", Path: "/dev/tty", Err: errors.New("no such device")}
	})
	if err == nil || err.Error() != "there is no terminal to ask on: no such device" {
		t.Errorf("error %v", err)
	}
}

func TestTrustAsksNothing(t *testing.T) {
	noTerminal := func() (io.ReadWriteCloser, error) {
		t.Error("the terminal was opened")
		return nil, errors.New("none")
	}
	for _, tt := range []struct{ policy, out, err string }{
		{"[limits]\nruns = 2\n", "only narrows", ""},
		{"", "only narrows", ""},
		{"[limits]\nruns = 99\nprocesses = 0\n", "", ".airlock.toml:3: limits.processes: the value is less than 4"},
		{"[packages]\napprove = \"never\"\n", "only narrows", ""},
		{"[nope]\n", "", ".airlock.toml:1: nope: unknown key"},
	} {
		s := trustSetup(t, tt.policy)
		var out bytes.Buffer
		err := trust(s, &out, noTerminal)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.err || !strings.Contains(out.String(), tt.out) {
			t.Errorf("%q: printed %q, error %q; want %q, %q", tt.policy, out.String(), got, tt.out, tt.err)
		}
	}
}

// What does not read as a record of trust trusts nothing.
func TestTrustRecordDamaged(t *testing.T) {
	s := trustSetup(t, wide)
	policy, err := readProjectPolicy(s.workspace)
	if err != nil {
		t.Fatal(err)
	}
	store := s.places.trust()
	if err := store.add(policy); err != nil {
		t.Fatal(err)
	}
	if ok, _, err := store.holds(policy); !ok || err != nil {
		t.Fatalf("just added: %v, %v", ok, err)
	}
	file := store.file(policy.workspace)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{}", "[]", "null", string(good[:len(good)/2]), strings.Replace(string(good), policy.workspace, "/other", 1)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, changed, err := store.holds(policy); ok || changed || err != nil {
			t.Errorf("%q: trusted %v, changed %v, %v", text, ok, changed, err)
		}
	}
}
