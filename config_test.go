package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The example says every key, with its default.
func TestExampleIsTheDefaults(t *testing.T) {
	text, err := os.ReadFile("config.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := document{origin: origin{Kind: fromFile, Name: "config.example.toml"}, text: text}.decode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Defaults(), d.config, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("values (-defaults +example):\n%s", diff)
	}
	var want, got []string
	for _, k := range configKeys() {
		want = append(want, k.name)
	}
	for _, k := range d.keys {
		got = append(got, k.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-configuration +example):\n%s", diff)
	}
}

// Each key takes another value than its default.
func TestOtherValues(t *testing.T) {
	for _, k := range configKeys() {
		for _, value := range otherValues[k.name] {
			c := Defaults()
			if _, err := toml.Decode("["+k.name[:strings.LastIndexByte(k.name, '.')]+"]\n"+k.name[strings.LastIndexByte(k.name, '.')+1:]+" = "+value, &c); err != nil {
				t.Fatalf("%s = %s: %v", k.name, value, err)
			}
			if err := c.Validate(); err != nil && k.name != "sandbox.backend" {
				t.Errorf("%s = %s: %v", k.name, value, err)
			}
		}
		if len(otherValues[k.name]) == 0 {
			t.Errorf("%s: this test has no value to try", k.name)
		}
	}
}

// otherValues are right values of each key that are not its default.
var otherValues = map[string][]string{
	"workspace.mode": {`"direct"`, `"readonly"`}, "workspace.land_on": {`"exit"`, `"review"`}, "workspace.on_conflict": {`"discard"`},
	"workspace.durable": {"true"}, "workspace.protect": {`["x"]`}, "workspace.ignore": {`[]`}, "workspace.undo": {`"2GiB"`}, "workspace.order": {`"parallel"`},
	"sandbox.backend": {`"native"`, `"bwrap"`, `"direct"`}, "sandbox.read": {`["/srv/data"]`}, "sandbox.hide": {`[".env"]`}, "sandbox.pass_env": {`["X"]`},
	"sandbox.env": {`{ A = "b" }`}, "sandbox.cache": {`""`, `"1GiB"`},
	"limits.timeout": {`"1m"`}, "limits.max_timeout": {`"2h"`}, "limits.wait": {`"10s"`}, "limits.processes": {"64"}, "limits.memory": {`"1GiB"`},
	"limits.disk": {`"1GiB"`}, "limits.output": {`"2KiB"`}, "limits.runs": {"2"}, "limits.files": {"1024"}, "limits.cpu": {"1.5", "2"}, "limits.enforce": {`"strict"`},
	"network.mode": {`"allowlist"`, `"allow"`}, "network.allow": {`["a.test"]`}, "network.deny": {`["a.test"]`}, "network.private": {`["10.0.0.0/8"]`},
	"network.upstream": {`"http://p.test:1"`}, "network.resolve": {`{ "a.test" = "127.0.0.1" }`},
	"packages.approve": {`"never"`}, "packages.allow": {`["six"]`}, "packages.deny": {`["six"]`}, "packages.index": {`"https://index.test"`},
	"packages.hosts": {`["files.test"]`}, "packages.cert": {`"/c.pem"`}, "packages.r.repo": {`"https://r.test"`}, "packages.r.allow": {`["jsonlite"]`}, "packages.r.deny": {`["jsonlite"]`},
	"tools.disable":      {`["run_python"]`},
	"python.interpreter": {`"/usr/bin/python3"`}, "python.deps": {`["/d"]`}, "python.base": {`["six"]`},
}

// A fault names the file, the line and the key.
func TestUserFileFaults(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown section", "[netwrok]\nallow = [\"x\"]\n", `FILE:1: netwrok: unknown key; did you mean "network"?`},
		{"unknown key", "\n[limits]\n\ntimout = \"1m\"\n", `FILE:4: limits.timout: unknown key; did you mean "timeout"?`},
		{"each unknown key", "[limits]\na = 1\nb = 2\n", "FILE:2: limits.a: unknown key\nFILE:3: limits.b: unknown key"},
		{"unknown key in a section of a section", "[packages.r]\nmirror = \"x\"\n", `FILE:2: packages.r.mirror: unknown key`},
		{"unknown top-level key", "timeout = \"1m\"\n", `FILE:1: timeout: unknown key`},
		{"wrong case", "[Limits]\nTimeout = \"1m\"\n", `FILE:1: Limits: unknown key; did you mean "limits"?`},
		{"case that the decoder would merge", "[limits]\ntimeout = \"1m\"\nTimeout = \"2m\"\n", `FILE:3: limits.Timeout: unknown key; did you mean "timeout"?`},
		{"dotted", "limits.timeot = \"1m\"\n", `FILE:1: limits.timeot: unknown key; did you mean "timeout"?`},
		{"a key that holds a dot", "\"limits.timeout\" = \"1m\"\n", `FILE:1: "limits.timeout": unknown key; did you mean "limits"?`},
		{"odd key", "\"a\\u001b[31m\\u202e\" = 1\n", `FILE:1: "a\x1b[31m\u202e": unknown key`},
		{"long key", strings.Repeat("k", 99) + " = 1\n", `FILE:1: ` + strings.Repeat("k", 64) + `…: unknown key`},
		{"twice", "[limits]\ntimeout = \"1m\"\ntimeout = \"2m\"\n", `FILE:3: limits.timeout: Key 'limits.timeout' has already been defined.`},
		{"section twice", "[limits]\n[limits]\n", `FILE:2: Key 'limits' has already been defined.`},
		{"section as a value", "limits = 3\n", `FILE:1: limits: is a section, written as [limits]`},
		{"section as a list", "[[limits]]\n", `FILE:1: limits: is a section, written as [limits]`},
		{"number for a text", "[limits]\ntimeout = 3\n", `FILE:2: limits.timeout: takes a text in quotes, as in "90s" or "2m", not a number`},
		{"text for a number", "[limits]\nprocesses = \"3\"\n", `FILE:2: limits.processes: takes a whole number, not a text`},
		{"fraction for a whole number", "[limits]\nprocesses = 3.5\n", `FILE:2: limits.processes: takes a whole number, not a number`},
		{"date for a number", "[limits]\ncpu = 2020-01-01\n", `FILE:2: limits.cpu: takes a number, not a date`},
		{"text for a switch", "[workspace]\ndurable = \"true\"\n", `FILE:2: workspace.durable: takes true or false, not a text`},
		{"text for a list", "[network]\nallow = \"x\"\n", `FILE:2: network.allow: takes a list of texts, as in ["a", "b"], not a text`},
		{"numbers in a list", "[network]\nallow = [\n  \"x\",\n  1,\n]\n", `FILE:2: network.allow: takes a list of texts, as in ["a", "b"], not a list with other things in it`},
		{"numbers in a table", "[sandbox.env]\nA = 1\n", `FILE:1: sandbox.env: takes a table of texts, as in { a = "b" }, not a table with other things in it`},
		{"bad size", "[limits]\nmemory = \"4G\"\n", `FILE:2: limits.memory: "4G" is not a size; write a whole number and a unit, as in "512MiB" or "4GiB"`},
		{"bad duration", "[limits]\ntimeout = \"2 minutes\"\n", `FILE:2: limits.timeout: "2 minutes" is not a duration; write a number and a unit, as in "45s", "2m" or "1h30m"`},
		{"bad word", "[workspace]\nmode = \"over\"\n", `FILE:2: workspace.mode: "over" is not one of overlay, direct, readonly`},
		{"bad pattern", "[network]\nallow = [\"a b\"]\n", `FILE:2: network.allow: "a b": a host can't hold ' '`},
		{"bad tool", "[tools]\ndisable = [\"shell\"]\n", `FILE:2: tools.disable: "shell" is not a tool; there are run_shell, run_python, package_install, python_env`},
		{"timeouts that do not fit", "[limits]\nmax_timeout = \"1m\"\n", `FILE:2: limits.timeout: 2m is more than limits.max_timeout, which is 1m`},
		{"direct alone", "[sandbox]\nbackend = \"direct\"\n", `FILE:2: sandbox.backend: "direct" isolates nothing; write workspace.mode = "direct" and network.mode = "allow" beside it to say that you know, or take another backend`},
		{"direct with half of it", "[sandbox]\nbackend = \"direct\"\n[workspace]\nmode = \"direct\"\n", `FILE:2: sandbox.backend: "direct" isolates nothing; write network.mode = "allow" beside it to say that you know, or take another backend`},
		{"bad glob", "[sandbox]\nhide = [\".env\",\n  \"a/../b\"]\n", `FILE:2: sandbox.hide[1]: "a/../b" is not a glob: it holds the name ".."`},
		{"nothing hides", "[sandbox]\nbackend = \"direct\"\nhide = [\".env\"]\n[workspace]\nmode = \"direct\"\n[network]\nmode = \"allow\"\n", `FILE:3: sandbox.hide: nothing hides a path from a run without a sandbox; leave it out, or take another sandbox.backend than "direct"`},
		{"direct mode that waits", "[workspace]\nmode = \"direct\"\nland_on = \"review\"\n", `FILE:2: workspace.mode: "direct" has nothing that could wait for a review; take "overlay", or another workspace.land_on than "review"`},
		{"direct mode that discards", "[workspace]\nmode = \"direct\"\non_conflict = \"discard\"\n", `FILE:2: workspace.mode: "direct" has no conflict check; take "overlay", or workspace.on_conflict = "beside"`},
		{"direct mode that waits for the disk", "[workspace]\nmode = \"direct\"\ndurable = true\n", `FILE:2: workspace.mode: "direct" has no landing that could be durable; take "overlay", or workspace.durable = false`},
		{"no value", "[limits]\ntimeout =\n", `FILE:2: limits.timeout: expected value but found '\n' instead`},
		{"mark", "\ufeff[limits]\n", `FILE:1: begins with a byte order mark`},
		{"UTF-16", "\xff\xfe[\x00", `FILE:1: begins with a byte order mark`},
		{"NUL", "[limits]\n#\x00\n", `FILE:2: limits: TOML files cannot contain control characters: '0x00'`},
		{"not UTF-8", "[limits]\ntimeout = \"\xff\"\n", `FILE:2: limits.timeout: invalid UTF-8 byte: 0xff`},
		{"endless", "# " + strings.Repeat("x", maxDocument), `FILE: longer than 1048576 bytes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := userSettings(configFile{path: file}, nil, nil)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(strings.ReplaceAll(tt.want, "FILE", file), err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Flags win over variables, variables over the file, the file over defaults, and each value knows
// where it was written.
func TestLayers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	text := "[limits]\ntimeout = \"3m\"\nprocesses = 100\nruns = 3\n\n[sandbox]\nbackend = \"native\"\npass_env = [\"A\", \"B\"]\nenv = { X = \"file\", Y = \"file\" }\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	backend, _ := findKey("sandbox.backend")
	s, err := userSettings(configFile{path: file}, []string{
		"AIRLOCK_LIMITS_PROCESSES=50", "AIRLOCK_LIMITS_ENFORCE=strict", "AIRLOCK_SANDBOX_BACKEND=native",
		"AIRLOCK_SANDBOX_PASS_ENV=LC_*, TERM,", `AIRLOCK_SANDBOX_READ=["/a,b", "/c"]`, `AIRLOCK_SANDBOX_ENV={ Z = "variable" }`,
		"AIRLOCK_WORKSPACE_PROTECT=", "AIRLOCK_PYTHON_INTERPRETER=/opt/a \"b\"/python3", "AIRLOCK_WORKSPACE=/ws", "HOME=/h", "AIRLOCK=x",
	}, []flagValue{{"--backend", backend, "auto"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults()
	want.Limits.Timeout *= 3
	want.Limits.Timeout /= 2
	want.Limits.Processes, want.Limits.Runs, want.Limits.Enforce = 50, 3, "strict"
	want.Sandbox.PassEnv = []string{"LC_*", "TERM"}
	want.Sandbox.Read = []string{"/a,b", "/c"}
	want.Sandbox.Env = map[string]string{"Z": "variable"}
	want.Python.Interpreter = `/opt/a "b"/python3`
	if diff := cmp.Diff(want, s.Config, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	for name, from := range map[string]string{
		"limits.timeout":     file + ":2",
		"limits.processes":   "AIRLOCK_LIMITS_PROCESSES",
		"limits.memory":      "default",
		"sandbox.backend":    "--backend",
		"sandbox.env":        "AIRLOCK_SANDBOX_ENV",
		"workspace.protect":  "AIRLOCK_WORKSPACE_PROTECT",
		"python.interpreter": "AIRLOCK_PYTHON_INTERPRETER",
	} {
		key, _ := findKey(name)
		if got := s.from(key); got != from {
			t.Errorf("%s comes from %q, want %q", name, got, from)
		}
	}
}

func TestVariableFaults(t *testing.T) {
	for _, tt := range []struct{ variable, want string }{
		{"AIRLOCK_NETWROK_MODE=deny", "AIRLOCK_NETWROK_MODE: sets no key of the configuration; did you mean AIRLOCK_NETWORK_MODE?"},
		{"AIRLOCK_WORKSPACE_BOGUS=1", "AIRLOCK_WORKSPACE_BOGUS: sets no key of the configuration"},
		{"AIRLOCK_LIMITS=1", "AIRLOCK_LIMITS: sets no key of the configuration; did you mean AIRLOCK_LIMITS_TIMEOUT?"},
		{"AIRLOCK_X\x1b[0m=1", `"AIRLOCK_X\x1b[0m": sets no key of the configuration`},
		{"AIRLOCK_LIMITS_PROCESSES=many", `AIRLOCK_LIMITS_PROCESSES: limits.processes: expected value but found "many" instead`},
		{"AIRLOCK_LIMITS_PROCESSES=\"3\"", `AIRLOCK_LIMITS_PROCESSES: limits.processes: takes a whole number, not a text`},
		{"AIRLOCK_LIMITS_PROCESSES=", `AIRLOCK_LIMITS_PROCESSES: limits.processes: unexpected EOF; expected value`},
		{"AIRLOCK_LIMITS_PROCESSES=3\nmemory = \"1GiB\"", `AIRLOCK_LIMITS_PROCESSES: sets more than limits.processes`},
		{"AIRLOCK_LIMITS_TIMEOUT=1", `AIRLOCK_LIMITS_TIMEOUT: limits.timeout: "1" is not a duration; write a number and a unit, as in "45s", "2m" or "1h30m"`},
		{`AIRLOCK_NETWORK_ALLOW=["a"`, `AIRLOCK_NETWORK_ALLOW: network.allow: expected a comma (',') or array terminator (']'), but got end of file`},
		{"AIRLOCK_NETWORK_ALLOW=a b", `AIRLOCK_NETWORK_ALLOW: network.allow: "a b": a host can't hold ' '`},
		{"AIRLOCK_PACKAGES_R_REPO=ftp://r.test", "AIRLOCK_PACKAGES_R_REPO: packages.r.repo: not an address that begins with https:// or http://"},
	} {
		_, err := userSettings(configFile{path: filepath.Join(t.TempDir(), "none")}, []string{tt.variable}, nil)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: error\n\t%v, want\n\t%s", tt.variable, err, tt.want)
		}
	}
}

func TestMissingFile(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.toml")
	if _, err := userSettings(configFile{path: none}, nil, nil); err != nil {
		t.Errorf("a missing file that nobody named: %v", err)
	}
	_, err := userSettings(configFile{path: none, named: true}, nil, nil)
	if want := none + ": the configuration can't be read: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	dir := t.TempDir()
	_, err = userSettings(configFile{path: dir}, nil, nil)
	if want := dir + ": the configuration can't be read: is a directory"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

// What tomlValue writes is read back as the same value.
func TestTOMLValue(t *testing.T) {
	for _, s := range []string{"", "plain", "a\"b\\c\nd\te", "\x1b[31m\x00\x7f", "é\u202e\U0001F600\U000E0001", "${x}'"} {
		for _, v := range []any{s, []string{s, s}, map[string]string{s: s, "k": "v"}} {
			text := tomlValue(v)
			if strings.ContainsAny(text, "\n\x1b\x00\u202e") {
				t.Errorf("%q prints as %q", v, text)
			}
			var back map[string]any
			if _, err := toml.Decode("v = "+text, &back); err != nil {
				t.Fatalf("%q prints as %s: %v", v, text, err)
			}
			if diff := cmp.Diff(generic(v), back["v"]); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		}
	}
}

// generic is a value as the decoder gives it.
func generic(v any) any {
	switch v := v.(type) {
	case []string:
		list := []any{}
		for _, s := range v {
			list = append(list, s)
		}
		return list
	case map[string]string:
		table := map[string]any{}
		for k, s := range v {
			table[k] = s
		}
		return table
	}
	return v
}

// Whatever a file holds, reading it ends with settings that are valid or with a fault that names the
// place and, of a file that may not be quoted, nothing of it.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"[limits]\ntimeout = 1\n", "a.b.c = 1\n[a]\n", "[[network]]\n", "\ufeff", "x = \"\"\"\n\n", "[packages.r]\n[packages]\n", "'' = 1", "[limits]\ncpu = nan\n", "[network]\nallow = ['*.a.test']\n[sandbox.env]\nA = 'b'\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, secret := range []bool{false, true} {
			doc := document{origin: origin{Kind: fromPolicy, Name: "FILE"}, text: []byte(text), secret: secret}
			d, err := doc.decode()
			if err != nil {
				for _, one := range flatten(err) {
					if !strings.HasPrefix(one.Error(), "FILE") || len(one.Error()) > 1000 && secret {
						t.Errorf("error %q", one)
					}
					var line int
					if n, _ := fmt.Sscanf(one.Error(), "FILE:%d:", &line); n == 1 && (line < 1 || line > 1+strings.Count(strings.TrimSuffix(text, "\n"), "\n")) {
						t.Errorf("error %q, of a file that has no such line", one)
					}
				}
				continue
			}
			s := settings{Config: Defaults(), origins: map[string][]origin{}}
			for _, key := range d.keys {
				key.set(&s.Config, key.get(&d.config))
			}
			_ = s.check()
		}
	})
}

// A project's policy is at most 64 KiB, but all of it can be meant to take long.
func TestHostileDocuments(t *testing.T) {
	many := func(unit func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxPolicy-100; i++ {
			b.WriteString(unit(i))
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"unknown keys":     many(func(i int) string { return fmt.Sprintf("k%d=1\n", i) }),
		"unknown sections": many(func(i int) string { return fmt.Sprintf("[s%d]\n", i) }),
		"deep key":         strings.Repeat("a.", maxPolicy/2-10) + "a=1",
		"deep section":     "[" + strings.Repeat("a.", maxPolicy/2-10) + "a]",
		"deep list":        "a=" + strings.Repeat("[", maxPolicy-10),
		"deep tables":      many(func(int) string { return "a={a=" }),
		"one table":        "[sandbox.env]\n" + many(func(i int) string { return fmt.Sprintf("k%d=''\n", i) }),
		"one list":         "[network]\ndeny=[" + many(func(int) string { return "'a'," }) + "]",
		"cases":            "[limits]\n" + many(func(i int) string { return caseOf("max_timeout_processes", i) + "=1\n" }),
		"long name":        strings.Repeat("a", maxPolicy-10) + "=1",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := userOf(t, "").under(policyOf(text), false)
			// Some 0.2 s for the longest on an idle machine; without the bounds it is minutes.
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v (error %.200v)", took, err)
			}
			if err == nil && name != "one list" {
				t.Error("accepted")
			}
			if err != nil && len(err.Error()) > 4000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

// caseOf spells a word with the case of its letters by the bits of i.
func caseOf(word string, i int) string {
	letters := []byte(word)
	for n := range letters {
		if i>>n&1 == 1 {
			letters[n] &^= 'a' - 'A'
		}
	}
	return string(letters)
}
