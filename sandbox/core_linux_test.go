package sandbox

import (
	"strings"
	"testing"
)

func TestCheckCoreDumps(t *testing.T) {
	for pattern, want := range map[string]string{
		"core":                         "",
		"|/usr/share/apport/apport %p": "no program",
		"@/run/coredump.sock":          "socket",
		"@@/run/coredump.sock":         "socket",
	} {
		c, ok := checkCoreDumps(host{read: func(string) ([]byte, error) { return []byte(pattern + "\n"), nil }})
		if ok != (want != "") || !strings.Contains(c.Detail, want) {
			t.Errorf("%s: %+v, %v; want %q", pattern, c, ok, want)
		}
	}
}

// Programs that set the limit to 0 and insist on it find it set, and those that ask for it find that no core is dumped.
func TestCoreLimit(t *testing.T) {
	out := shell(t, newNative(t), `ulimit -c; ulimit -c 0 && ulimit -c
/usr/bin/python3 -c '
import resource as r
r.setrlimit(r.RLIMIT_CORE, (0, 0)); print(r.getrlimit(r.RLIMIT_CORE))'`)
	if want := "0\n0\n(1, 1)\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
