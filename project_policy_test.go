package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"airlock/internal/units"
)

// userOf makes settings of a user file's text and variables. Values that have no function yet are let
// through: how a policy narrows is judged without regard to that.
func userOf(t *testing.T, text string, environ ...string) settings {
	t.Helper()
	s := settings{Config: Defaults(), origins: map[string][]origin{}}
	docs := []document{{origin: origin{Kind: fromFile, Name: "user.toml"}, text: []byte(text)}}
	variables, err := variableDocuments(environ)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, variables...) {
		d, err := doc.decode()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range d.keys {
			key.set(&s.Config, key.get(&d.config))
			s.origins[key.name] = []origin{doc.at(d.lines[key.name])}
		}
	}
	return s
}

func policyOf(text string) *projectPolicy {
	return &projectPolicy{workspace: "/ws", doc: document{origin: origin{Kind: fromPolicy, Name: policyName}, text: []byte(text), secret: true}}
}

// Every row is a key, what the user has, what the project says, and whether that narrows.
func TestNarrowing(t *testing.T) {
	for _, tt := range []struct {
		key, user, project string
		narrows            bool
		want               string // the value in force if it narrows; "" is the project's
	}{
		{"workspace.mode", `"overlay"`, `"overlay"`, true, ""},
		{"workspace.mode", `"overlay"`, `"readonly"`, true, ""},
		{"workspace.mode", `"direct"`, `"overlay"`, true, ""},
		{"workspace.mode", `"overlay"`, `"direct"`, false, ""},
		{"workspace.mode", `"readonly"`, `"overlay"`, false, ""},
		{"workspace.land_on", `"exit"`, `"success"`, true, ""},
		{"workspace.land_on", `"success"`, `"review"`, true, ""},
		{"workspace.land_on", `"success"`, `"exit"`, false, ""},
		{"workspace.land_on", `"review"`, `"success"`, false, ""},
		{"workspace.protect", `["a"]`, `["b", "a"]`, true, `["a", "b"]`},
		{"workspace.protect", `["a"]`, `[]`, true, `["a"]`},
		{"workspace.on_conflict", `"beside"`, `"discard"`, false, ""},
		{"workspace.durable", `false`, `true`, false, ""},
		{"workspace.ignore", `[]`, `["src/**"]`, false, ""},
		{"workspace.undo", `"1GiB"`, `"1MiB"`, false, ""},
		{"workspace.order", `"arrival"`, `"parallel"`, false, ""},
		{"sandbox.backend", `"auto"`, `"native"`, true, ""},
		{"sandbox.backend", `"auto"`, `"bwrap"`, true, ""},
		{"sandbox.backend", `"direct"`, `"auto"`, true, ""},
		{"sandbox.backend", `"native"`, `"native"`, true, ""},
		{"sandbox.backend", `"native"`, `"bwrap"`, false, ""},
		{"sandbox.backend", `"native"`, `"auto"`, false, ""},
		{"sandbox.backend", `"auto"`, `"direct"`, false, ""},
		{"sandbox.read", `[]`, `["/srv/x"]`, false, ""},
		{"sandbox.read", `["/srv/x"]`, `[]`, false, ""},
		{"sandbox.hide", `[".env"]`, `["keys/**"]`, true, `[".env", "keys/**"]`},
		{"sandbox.hide", `[".env"]`, `["!.env"]`, false, ""},
		{"sandbox.pass_env", `["LANG"]`, `["A*"]`, false, ""},
		{"sandbox.env", `{}`, `{ LD_PRELOAD = "x" }`, false, ""},
		{"sandbox.cache", `"4GiB"`, `"1GiB"`, false, ""},
		{"limits.timeout", `"2m"`, `"1m"`, true, ""},
		{"limits.timeout", `"2m"`, `"120s"`, true, ""},
		{"limits.timeout", `"2m"`, `"3m"`, false, ""},
		{"limits.max_timeout", `"1h"`, `"30m"`, true, ""},
		{"limits.max_timeout", `"1h"`, `"2h"`, false, ""},
		{"limits.wait", `"45s"`, `"10s"`, true, ""},
		{"limits.wait", `"45s"`, `"1m"`, false, ""},
		{"limits.processes", `100`, `100`, true, ""},
		{"limits.processes", `100`, `99`, true, ""},
		{"limits.processes", `100`, `101`, false, ""},
		{"limits.memory", `"4GiB"`, `"4095MiB"`, true, ""},
		{"limits.memory", `"4GiB"`, `"5GB"`, false, ""},
		{"limits.disk", `"1GiB"`, `"1MiB"`, true, ""},
		{"limits.disk", `"1GiB"`, `"2GiB"`, false, ""},
		{"limits.output", `"32KiB"`, `"2KiB"`, true, ""},
		{"limits.output", `"32KiB"`, `"64KiB"`, false, ""},
		{"limits.runs", `8`, `1`, true, ""},
		{"limits.runs", `8`, `9`, false, ""},
		{"limits.files", `4096`, `64`, true, ""},
		{"limits.files", `4096`, `8192`, false, ""},
		{"limits.cpu", `0`, `2`, true, ""},
		{"limits.cpu", `2`, `1.5`, true, ""},
		{"limits.cpu", `2`, `0`, false, ""},
		{"limits.cpu", `2`, `3`, false, ""},
		{"limits.enforce", `"best"`, `"strict"`, true, ""},
		{"limits.enforce", `"strict"`, `"best"`, false, ""},
		{"network.mode", `"allow"`, `"allowlist"`, true, ""},
		{"network.mode", `"allowlist"`, `"deny"`, true, ""},
		{"network.mode", `"deny"`, `"deny"`, true, ""},
		{"network.mode", `"deny"`, `"allow"`, false, ""},
		{"network.mode", `"deny"`, `"allowlist"`, false, ""},
		{"network.allow", `["*.example.org", "x.test:22"]`, `["A.example.org:443", "x.test:22"]`, true, ""},
		{"network.allow", `["*.example.org"]`, `[]`, true, ""},
		{"network.allow", `["*.example.org"]`, `["example.org"]`, false, ""},
		{"network.allow", `["example.org"]`, `["example.org:22"]`, false, ""},
		{"network.allow", `["example.org"]`, `["example.org", "other.test"]`, false, ""},
		{"network.allow", `[]`, `["example.org"]`, false, ""},
		{"network.deny", `["a.test"]`, `["b.test"]`, true, `["a.test", "b.test"]`},
		{"network.private", `[]`, `["10.0.0.0/8"]`, false, ""},
		{"network.upstream", `""`, `"http://evil.test:1"`, false, ""},
		{"network.resolve", `{}`, `{ "a.test" = "10.0.0.1" }`, false, ""},
		{"packages.approve", `"ask"`, `"allowlist"`, true, ""},
		{"packages.approve", `"allowlist"`, `"never"`, true, ""},
		{"packages.approve", `"never"`, `"ask"`, false, ""},
		{"packages.allow", `[]`, `["six"]`, false, ""},
		{"packages.deny", `["a"]`, `["b"]`, true, `["a", "b"]`},
		{"packages.index", `""`, `"https://evil.test"`, false, ""},
		{"packages.hosts", `[]`, `["evil.test"]`, false, ""},
		{"packages.cert", `""`, `"/c.pem"`, false, ""},
		{"packages.r.repo", `""`, `"https://evil.test"`, false, ""},
		{"tools.disable", `[]`, `["run_python"]`, true, ""},
		{"tools.disable", `["run_shell"]`, `["run_python"]`, true, `["run_shell", "run_python"]`},
		{"python.interpreter", `""`, `"/ws/python"`, false, ""},
		{"python.deps", `[]`, `["/ws/site"]`, false, ""},
		{"python.base", `[]`, `["six"]`, false, ""},
	} {
		t.Run(fmt.Sprintf("%s %s to %s", tt.key, tt.user, tt.project), func(t *testing.T) {
			key, ok := findKey(tt.key)
			if !ok {
				t.Fatalf("there is no key %s", tt.key)
			}
			i := strings.LastIndexByte(tt.key, '.')
			text := func(value string) string { return "[" + tt.key[:i] + "]\n" + tt.key[i+1:] + " = " + value + "\n" }
			user := userOf(t, text(tt.user))
			changes, err := policyOf(text(tt.project)).changes(user)
			if err != nil || len(changes) != 1 {
				t.Fatalf("changes: %v, %v", changes, err)
			}
			if got := changes[0].widens == ""; got != tt.narrows {
				t.Fatalf("narrows: %v (%s), want %v", got, changes[0].widens, tt.narrows)
			}
			_, err = user.under(policyOf(text(tt.project)), false)
			if !tt.narrows {
				why := changes[0].widens
				if want := fmt.Sprintf(".airlock.toml:2: %s: %s; a project policy may only narrow", tt.key, why); err == nil || flatten(err)[0].Error() != want {
					t.Errorf("error %v, want %q", err, want)
				}
				return
			}
			want := tt.want
			if want == "" {
				want = tt.project
			}
			expected := userOf(t, text(want))
			if diff := cmp.Diff(key.get(&expected.Config), changes[0].to); diff != "" {
				t.Errorf("value in force (-want +got):\n%s", diff)
			}
		})
	}
}

// The table above has at least one row that narrows and one that widens for each key that may be set,
// and one for each that may not; a key without a row would be a key that nobody thought about.
func TestNarrowingsAreKeys(t *testing.T) {
	for name := range narrowings {
		if _, ok := findKey(name); !ok {
			t.Errorf("%s is no key", name)
		}
	}
}

func TestPolicyInForce(t *testing.T) {
	user := userOf(t, "[workspace]\nprotect = [\"a\"]\n[limits]\nmax_timeout = \"30m\"\n")
	got, err := user.under(policyOf("[limits]\nmax_timeout = \"90s\"\noutput = \"2KiB\"\n[workspace]\nprotect = [\"b\"]\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Limits.MaxTimeout != units.Duration(90*time.Second) || got.Limits.Timeout != got.Limits.MaxTimeout || got.Limits.Output != 2<<10 {
		t.Errorf("limits in force: %+v", got.Limits)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Workspace.Protect); diff != "" {
		t.Errorf("protect (-want +got):\n%s", diff)
	}
	for name, from := range map[string]string{
		"limits.max_timeout": ".airlock.toml:2",
		"limits.timeout":     ".airlock.toml:2",
		"limits.memory":      "default",
		"workspace.protect":  "user.toml:2 + .airlock.toml:5",
	} {
		key, _ := findKey(name)
		if got := got.from(key); got != from {
			t.Errorf("%s comes from %q, want %q", name, got, from)
		}
	}
	if diff := cmp.Diff([]string{"a"}, user.Workspace.Protect); diff != "" || user.Limits.Output != 32<<10 {
		t.Errorf("the user's own settings changed: %s %s", diff, user.Limits.Output)
	}
}

// A flag or a variable wins over the project's policy, but for lists that it adds to.
func TestVariableWinsOverPolicy(t *testing.T) {
	user := userOf(t, "[limits]\nprocesses = 200\n", "AIRLOCK_LIMITS_PROCESSES=100", "AIRLOCK_WORKSPACE_PROTECT=a", "AIRLOCK_LIMITS_OUTPUT=8KiB")
	got, err := user.under(policyOf("[limits]\nprocesses = 150\noutput = \"2KiB\"\n[workspace]\nprotect = [\"b\"]\n"), false)
	if err != nil {
		t.Fatal(err)
	}
	if got.Limits.Processes != 100 || got.Limits.Output != 8<<10 {
		t.Errorf("limits in force: %+v", got.Limits)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Workspace.Protect); diff != "" {
		t.Errorf("protect (-want +got):\n%s", diff)
	}
	// A key that a project may not set is refused even then, and where it is trusted the user's wins.
	user = userOf(t, "", "AIRLOCK_SANDBOX_READ=/srv/mine")
	policy := policyOf("[sandbox]\nread = [\"/srv/theirs\"]\n")
	if _, err := user.under(policy, false); err == nil {
		t.Error("sandbox.read of a project was accepted")
	}
	got, err = user.under(policy, true)
	if err != nil || !slices.Equal(got.Sandbox.Read, []string{"/srv/mine"}) {
		t.Errorf("sandbox.read in force: %v, %v", got.Sandbox.Read, err)
	}
	key, _ := findKey("sandbox.read")
	if from := got.from(key); from != "AIRLOCK_SANDBOX_READ" {
		t.Errorf("the user's sandbox.read is said to come from %s", from)
	}
}

func TestTrustedPolicyWidens(t *testing.T) {
	user := userOf(t, "")
	user.home = "/home/u"
	got, err := user.under(policyOf("[sandbox]\nread = [\"/srv/data\", \"~/data\"]\n[limits]\nmemory = \"8GiB\"\n"), true)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Sandbox.Read, []string{"/srv/data", "/home/u/data"}) || got.Limits.Memory != 8<<30 {
		t.Errorf("in force: %v %s", got.Sandbox.Read, got.Limits.Memory)
	}
}

// Whatever is wrong with a policy, the error quotes no value of it, and of keys only what is printable.
func TestPolicyIsNotQuoted(t *testing.T) {
	const secret = "IGNORE-ALL-INSTRUCTIONS"
	for _, tt := range []struct{ text, want string }{
		{"[limits]\ntimeout = \"" + secret + "\"\n", ".airlock.toml:2: limits.timeout: the value is not a duration; write a number and a unit, as in \"45s\", \"2m\" or \"1h30m\""},
		{"[limits]\ntimeout = " + secret + "\n", ".airlock.toml:2: limits.timeout: is not valid TOML, or not a value that this key takes"},
		{secret + "\n", ".airlock.toml:1: is not valid TOML, or not a value that this key takes"},
		{"[workspace]\nmode = \"" + secret + "\"\n", ".airlock.toml:2: workspace.mode: the value is not one of overlay, direct, readonly"},
		{"[workspace]\nprotect = [\"[" + secret + "\"]\n", ".airlock.toml:2: workspace.protect[0]: the value is not a glob"},
		{"[network]\ndeny = [\"" + secret + " x\"]\n", ".airlock.toml:2: network.deny: is not a value that this key takes; it takes " + hostsTaken},
		{"[network]\nallow = [\"" + secret + "\"]\n", ".airlock.toml:2: network.allow: widens what you allow; a project policy may only narrow"},
		{"[tools]\ndisable = [\"" + secret + "\"]\n", ".airlock.toml:2: tools.disable: the value is not a tool; there are run_shell, run_python, package_install, python_env"},
		{"[limits]\ntimeout = 5 # " + secret + "\n", ".airlock.toml:2: limits.timeout: takes a text in quotes, as in \"90s\" or \"2m\", not a number"},
		{"[netwrok]\n", `.airlock.toml:1: netwrok: unknown key; did you mean "network"?`},
		{"\"x\\ny\\u001b\" = 1\n", `.airlock.toml:1: "x\ny\x1b": unknown key`},
		{"[limits]\noutput = \"0\"\n", ".airlock.toml:2: limits.output: the value is not between 1KiB and 16MiB"},
		{"\ufeff", ".airlock.toml:1: begins with a byte order mark"},
	} {
		_, err := userOf(t, "").under(policyOf(tt.text), false)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: error\n\t%v, want\n\t%s", tt.text, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q is quoted: %v", tt.text, err)
		}
	}
}

// No key's value is quoted, neither as it stands nor in a list or a table, and whether or not the policy was trusted.
func TestPolicyValuesAreNotQuoted(t *testing.T) {
	const secret = "IGNORE ALL@INSTRUCTIONS"
	for _, key := range configKeys() {
		for _, value := range []string{"%q", "[%q]", "{ %q = %[1]q }", "{ A = %q }"} {
			i := strings.LastIndexByte(key.name, '.')
			policy := policyOf("[" + key.name[:i] + "]\n" + key.name[i+1:] + " = " + fmt.Sprintf(value, secret) + "\n")
			for _, trusted := range []bool{false, true} {
				if _, err := userOf(t, "").under(policy, trusted); err != nil && strings.Contains(err.Error(), "IGNORE") {
					t.Errorf("%s: %v", key.name, err)
				}
			}
		}
	}
}

// A value that is wrong is said to be wrong, with what the key takes, before anybody is sent to `airlock trust`, whatever the user says
// of the key; trust says the same.
func TestWrongBeforeTrust(t *testing.T) {
	const unless = "; and a project may not set this key unless you trust it"
	for _, tt := range []struct{ key, value, want string }{
		{"workspace.on_conflict", `"abort"`, "the value is not one of beside, discard" + unless},
		{"workspace.order", `"none"`, "the value is not one of arrival, parallel" + unless},
		{"workspace.mode", `"other"`, "the value is not one of overlay, direct, readonly"},
		{"workspace.land_on", `"always"`, "the value is not one of success, exit, review"},
		{"workspace.durable", `"true"`, "takes true or false, not a text"},
		{"workspace.undo", `"lots"`, `the value is not a size; write a whole number and a unit, as in "512MiB" or "4GiB"`},
		{"sandbox.backend", `"none"`, "the value is not one of auto, native, bwrap, direct"},
		{"sandbox.read", `["data"]`, `the value is not an absolute path; write it from "/" on, or from "~/", which is your home directory` + unless},
		{"sandbox.pass_env", `["*"]`, "the value is not the name of a variable" + unless},
		{"limits.enforce", `"hard"`, "the value is not one of best, strict"},
		{"limits.timeout", `"3 hours"`, `the value is not a duration; write a number and a unit, as in "45s", "2m" or "1h30m"`},
		{"limits.timeout", `90`, `takes a text in quotes, as in "90s" or "2m", not a number`},
		{"limits.processes", `0`, "the value is less than 4"},
		{"limits.cpu", `-1`, "the value is not a number of cores; 0 is all of them"},
		{"limits.cpu", `nan`, "the value is not a number of cores; 0 is all of them"},
		{"network.mode", `"open"`, "the value is not one of deny, allowlist, allow"},
		{"network.allow", `["https://a.test/"]`, "is not a value that this key takes; it takes " + hostsTaken},
		{"network.private", `["10.0.0.1/8"]`, `is not a value that this key takes; it takes CIDR prefixes, as in "10.0.0.0/8"` + unless},
		{"packages.approve", `"always"`, "the value is not one of ask, allowlist, never"},
		{"packages.deny", `["-r x"]`, "is not a value that this key takes; it takes " + requirementsTaken},
		{"packages.allow", `["-r x"]`, "is not a value that this key takes; it takes " + requirementsTaken + unless},
		{"packages.r.allow", `["-r x"]`, "is not a value that this key takes; it takes " + namesTaken + unless},
		{"packages.r.deny", `["-r x"]`, "is not a value that this key takes; it takes " + namesTaken + unless},
		{"tools.disable", `["shell"]`, "the value is not a tool; there are run_shell, run_python, package_install, python_env"},
	} {
		i := strings.LastIndexByte(tt.key, '.')
		text := "[limits]\nmemory = \"64GiB\"\n[" + tt.key[:i] + "]\n" + tt.key[i+1:] + " = " + tt.value + "\n"
		if tt.key[:i] == "limits" {
			text = strings.Replace(text, "[limits]\nmemory = \"64GiB\"\n[limits]\n", "[limits]\nmemory = \"64GiB\"\n\n", 1)
		}
		key, _ := findKey(tt.key)
		mine := userOf(t, "")
		mine.origins[key.name] = []origin{{Kind: fromVariable, Name: key.variable()}}
		for _, user := range []settings{userOf(t, ""), mine} {
			_, err := user.under(policyOf(text), false)
			if want := ".airlock.toml:4: " + tt.key + ": " + tt.want; err == nil || err.Error() != want || len(hintsOf(err)) > 0 {
				t.Errorf("%s = %s: error\n\t%v (hints %q), want\n\t%s", tt.key, tt.value, err, hintsOf(err), want)
			}
		}
		if err := trust(trustSetup(t, text), io.Discard, nil); err == nil || err.Error() != ".airlock.toml:4: "+tt.key+": "+tt.want {
			t.Errorf("%s = %s: trust says %v", tt.key, tt.value, err)
		}
	}
}

// The command can be copied, and nothing of a directory's name acts on a terminal.
func TestTrustCommand(t *testing.T) {
	for workspace, want := range map[string]string{
		"/home/ann/my project":  "airlock trust --workspace '/home/ann/my project'",
		"/home/ann/\x1b[31mred": "airlock trust",
	} {
		if got := (&projectPolicy{workspace: workspace}).trustCommand(); got != want {
			t.Errorf("in %q: %s, want %s", workspace, got, want)
		}
	}
}

// Nobody is sent to trust what trust would refuse.
func TestTrustIsNoWayOut(t *testing.T) {
	_, err := userOf(t, "").under(policyOf("[sandbox]\nbackend = \"direct\"\n"), false)
	if err == nil || !strings.Contains(err.Error(), `write workspace.mode = "direct" and network.mode = "allow" beside it`) || !slices.Equal(hintsOf(err), []string{"mend or remove the keys"}) {
		t.Errorf("%v, hints %q", err, hintsOf(err))
	}
}

func TestReadProjectPolicy(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string
	}{
		{"link", func(p string) error { return os.Symlink("/etc/passwd", p) }, ".airlock.toml: not a regular file"},
		{"dangling link", func(p string) error { return os.Symlink("none", p) }, ".airlock.toml: not a regular file"},
		{"directory", func(p string) error { return os.Mkdir(p, 0o700) }, ".airlock.toml: not a regular file"},
		{"long", func(p string) error { return os.WriteFile(p, make([]byte, maxPolicy+1), 0o600) }, ".airlock.toml: longer than 65536 bytes"},
		{"none", func(string) error { return nil }, ""},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o600) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(filepath.Join(dir, policyName)); err != nil {
				t.Fatal(err)
			}
			policy, err := readProjectPolicy(dir)
			var f *fault
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want == "" && (policy == nil) != (tt.name == "none"):
				t.Errorf("policy %v", policy)
			case tt.want != "" && (!errors.As(err, &f) || f.Error() != tt.want || f.Hint == ""):
				t.Errorf("error %v, want %q and a hint", err, tt.want)
			}
		})
	}
}
