package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowSetup is a setup whose user file holds text; none if it is "".
func allowSetup(t *testing.T, text string) (s setup, file string) {
	t.Helper()
	home := t.TempDir()
	file = filepath.Join(home, "config", "airlock", "config.toml")
	if text != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	s, err := commonFlags{}.setUp([]string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config")})
	if err != nil {
		t.Fatal(err)
	}
	return s, file
}

func TestAllow(t *testing.T) {
	for _, tt := range []struct {
		name, before, answer string
		entries              []string
		after, out, err      string
		asked                string // part of the question; "" if nothing is asked
	}{
		{"first", "", "yes\n", []string{"A.test", "a.test:443"}, "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n", "Written to", "", `network.mode becomes "allowlist"`},
		{"more", "[network]\nmode = \"allowlist\"\nallow = [\"x.test\"]\n", "yes\n", []string{"a.test"}, "[network]\nmode = \"allowlist\"\nallow = [\"x.test\", \"a.test\"]\n", "Written to", "", "\n    \"a.test\"\n\nWrite this"},
		{"private", "", "no\n", []string{"10.0.0.1", "a.test", "[fd00::1]:22", "127.0.0.1:*", "localhost:80", "1.1.1.1"}, "", "", "nothing was changed: the answer was not yes", "\nThis alone does not open it: 10.0.0.1 is private, and network.private does not name it.\n\nThis alone does not open it: fd00::1 is private, and network.private does not name it.\n\nThis alone does not open it: 127.0.0.1: " + loopbackMend + ".\n\nThis alone does not open it: localhost: " + loopbackMend + ".\n\nUntil now"},
		{"private, named", "[network]\nprivate = [\"10.0.0.0/8\"]\n", "no\n", []string{"10.0.0.1"}, "[network]\nprivate = [\"10.0.0.0/8\"]\n", "", "nothing was changed: the answer was not yes", "\"10.0.0.1\"\n\nUntil now"},
		{"no", "", "maybe\n", []string{"a.test"}, "", "", "nothing was changed: the answer was not yes", `"a.test"`},
		{"covered", "[network]\nmode = \"allowlist\"\nallow = [\"*.test\"]\n", "", []string{"a.test"}, "[network]\nmode = \"allowlist\"\nallow = [\"*.test\"]\n", "covers that already", "", ""},
		{"listed, and closed", "[network]\nallow = [\"a.test\"]\n", "yes\n", []string{"a.test"}, "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n", "Written to", "", "\n    \"a.test\", which network.allow has already\n\nUntil now"},
		{"beside others, and closed", "[network]\nallow = [\"x.test\"]\n", "no\n", []string{"a.test"}, "[network]\nallow = [\"x.test\"]\n", "", "nothing was changed: the answer was not yes", "\n    \"a.test\"\n    \"x.test\", which network.allow has already\n\nUntil now"},
		{"open", "[network]\nmode = \"allow\"\n", "", []string{"a.test"}, "[network]\nmode = \"allow\"\n", "every public address", "", ""},
		{"denied", "[network]\ndeny = [\"a.test\"]\n", "", []string{"a.test"}, "[network]\ndeny = [\"a.test\"]\n", "", `network.deny: refuses "a.test", and wins over network.allow`, ""},
		{"by hand", "network = {mode = \"allowlist\"}\n", "", []string{"a.test"}, "network = {mode = \"allowlist\"}\n", "", "FILE: the file is written in a form that is changed by hand only", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, file := allowSetup(t, tt.before)
			tty := &fakeTerminal{Reader: strings.NewReader(tt.answer)}
			asked := false
			var out bytes.Buffer
			err := allow(s, tt.entries, &out, func() (io.ReadWriteCloser, error) { asked = true; return tty, nil })
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), file, "FILE")
			}
			if got != tt.err || !strings.Contains(out.String(), tt.out) {
				t.Errorf("printed %q, error %q; want %q, %q", out.String(), got, tt.out, tt.err)
			}
			if asked != (tt.asked != "") || !strings.Contains(tty.String(), tt.asked) {
				t.Errorf("asked %q, want %q", tty.String(), tt.asked)
			}
			text, err := os.ReadFile(file)
			if string(text) != tt.after {
				t.Errorf("the file holds %q (%v), want %q", text, err, tt.after)
			}
			if info, err := os.Stat(file); err == nil && tt.before != "" && info.Mode().Perm() != 0o640 {
				t.Errorf("the file has the mode %v", info.Mode())
			}
		})
	}
}

func TestAllowNeedsTerminal(t *testing.T) {
	s, _ := allowSetup(t, "")
	err := allow(s, []string{"a.test"}, io.Discard, func() (io.ReadWriteCloser, error) {
		return nil, &os.PathError{Op: "open", Path: "/dev/tty", Err: errors.New("no such device")}
	})
	if err == nil || err.Error() != "there is no terminal to ask on: no such device" {
		t.Errorf("error %v", err)
	}
}

// A host that is allowed is reached by the next run of a server that is running; a broken file closes the
// network until it is mended.
func TestNetworkIsReadAgain(t *testing.T) {
	s, file := allowSetup(t, "[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n")
	n := s.newNetwork(opened{settings: s.user})
	var told []string
	n.tell(func(s settings) { told = append(told, s.Network.Mode) })
	allows := func(host string) bool {
		t.Helper()
		g, err := n.current()
		if err != nil {
			t.Fatal(err)
		}
		return g != nil && g.Policy().Decide(host, 443).Allow
	}
	if !allows("a.test") || allows("b.test") {
		t.Error("the network is not what the file says")
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[network]\nmode = \"allowlist\"\nallow = [\"b.test\"]\n")
	if allows("a.test") || !allows("b.test") {
		t.Error("the file was not read again")
	}
	write("[network]\nmode = \"allowlist\"\nallow = [\"b.test\"\n")
	if g, err := n.current(); g != nil || err == nil || !strings.Contains(err.Error(), file+":") {
		t.Errorf("a broken file gives %v, %v", g, err)
	}
	write("[network]\n")
	if allows("b.test") {
		t.Error("the network is not closed again")
	}
	if want := []string{"allowlist", "deny"}; !slices.Equal(told, want) {
		t.Errorf("the changes that came into force were told with the modes %q, want %q", told, want)
	}
}
