package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is not valid TOML is said with the line that has to be mended, which is shown, whatever ends the lines of the file.
func TestParseFaultLines(t *testing.T) {
	const text, list, table = "the text that begins here is not closed by a quote", "the '[' that stands here is not closed by ']'", "the '{' that stands here is not closed by '}'"
	for _, tt := range []struct{ text, want, line string }{
		{"[limits]\ntimeout = \"1m\n", "FILE:2: limits.timeout: " + text, `timeout = "1m`},
		{"[limits]\ntimeout = \"1m\nruns = 3\n", "FILE:2: limits.timeout: " + text, `timeout = "1m`},
		{"[limits]\ntimeout = '1m", "FILE:2: limits.timeout: " + text, `timeout = '1m`},
		{"[limits]\ntimeout = \"1m\\\"\n", "FILE:2: limits.timeout: " + text, `timeout = "1m\"`},
		{"[limits]\n\ttimeout = \"\"\"1m\nruns = 3\n[network]\nmode = \"\"\n\n", "FILE:2: limits.timeout: " + text, `    timeout = """1m`},
		{"[limits]\ntimeout = '''\n1m\n\n", "FILE:2: limits.timeout: " + text, "timeout = '''"},
		{"[network]\nallow = [\n  \"a\",\n  \"b\n]\n", "FILE:4: network.allow: " + text, `  "b`},
		{"[network]\nallow = [\"a\"\n\n[limits]\nruns = 3\n", "FILE:2: network.allow: " + list, `allow = ["a"`},
		{"[network]\nallow = [\"a\", # ]\n\n[limits]\nruns = 3\n", "FILE:2: network.allow: " + list, `allow = ["a", # ]`},
		{"[network]\nallow = [\"a\"\nmode = \"deny\"\n", "FILE:2: network.allow: " + list, `allow = ["a"`},
		{"[network]\nallow = [\n  \"a]\",\n\n", "FILE:2: network.allow: " + list, "allow = ["},
		{"[network]\nallow = [", "FILE:2: network.allow: " + list, "allow = ["},
		{"[network]\nresolve = { \"a.test\" = \"127.0.0.1\"\n\n", "FILE:2: network.resolve.a.test: " + table, `resolve = { "a.test" = "127.0.0.1"`},
		{"[network]\nallow = [\n[\"a\"\n\n", "FILE:2: network.allow: " + list, "allow = ["},
		{"[limits\nruns = 3\n", "FILE:1: " + list, "[limits"},
		// Lists that are closed: what is wrong is where the decoder stops.
		{"[network]\nallow = [\n\"a\"\n\"b\"]\n", "FILE:4: network.allow: expected a comma (',') or array terminator (']'), but got '\"'", `"b"]`},
		{"[network]\nallow = [\n  \"a\",\n  b,\n]\n", "FILE:4: network.allow: expected value but found \"b\" instead", `  b,`},
		{"[limits]\ntimeout\nruns = 3\n", "FILE:2: limits: expected '.' or '=', but got '\\n' instead", "timeout"},
		{"[limits]\nruns = 3\n\nruns = 4\n", "FILE:4: limits.runs: Key 'limits.runs' has already been defined.", "runs = 4"},
		{"[limits]\nruns = 3 x\n[network]\nallow = [\n", "FILE:2: limits: expected a top-level item to end with a newline, comment, or EOF, but got 'x' instead", "runs = 3 x"},
		{"[limits]\nruns = 3 x\n[network]\nmode = \"deny\n", "FILE:2: limits: expected a top-level item to end with a newline, comment, or EOF, but got 'x' instead", "runs = 3 x"},
		{"[limits]\nruns = 3 x\n[network]\nallow = [\"a\", }]\n", "FILE:2: limits: expected a top-level item to end with a newline, comment, or EOF, but got 'x' instead", "runs = 3 x"},
		{"[network]\nallow = [\"a\" }\n", "FILE:2: network.allow: " + list, `allow = ["a" }`},
		// The line is for a person's eyes, but not if it may hold a secret.
		{"[limits]\nruns = \x1b[31m3 " + strings.Repeat("x", 200) + "\n", "FILE:2: limits.runs: TOML files cannot contain control characters: '0x1b'", "runs = �[31m3 " + strings.Repeat("x", 86) + "…"},
		{"[sandbox.env]\nTOKEN = \"s3cret\n", "FILE:2: sandbox.env.TOKEN: " + text, ""},
		{"[network]\nupstream = \"http://u:s3cret\n", "FILE:2: network.upstream: " + text, ""},
		{"sandbox = { env = { TOKEN = \"s3cret\" }, backend = auto }\n", "FILE:1: sandbox.backend: expected value but found \"auto\" instead", ""},
		{"network = { upstream = \"http://s3cret\", mode = deny }\n", "FILE:1: network.mode: expected value but found \"deny\" instead", ""},
		{"packages = { index = \"https://s3cret\", hosts = [ }\n", "FILE:1: packages.hosts: " + table, ""},
		{"[sandbox]\nenv TOKEN = \"s3cret\"\n", "FILE:2: sandbox: expected '.' or '=', but got 'T' instead", ""},
		{"[sandbox]\nenv.A = \"s3cret\" env.B = \"\"\n", "FILE:2: sandbox: expected a top-level item to end with a newline, comment, or EOF, but got 'e' instead", ""},
		{"[sandbox.evn]\nTOKEN = s3cret\n", "FILE:2: sandbox.evn.TOKEN: expected value but found \"s\" instead", ""},
		{"[Sandbox.Env]\nTOKEN = s3cret\n", "FILE:2: Sandbox.Env.TOKEN: is not a value of TOML", ""},
		{"[sandbox.env]\nTOKEN = tops3cret\n", "FILE:2: sandbox.env.TOKEN: is not a value of TOML", ""},
		{"[sandbox.env]\nTOKEN = 2026-99-99\n", "FILE:2: sandbox.env.TOKEN: is not a value of TOML", ""},
		{"[sandbox.env]\nTOKEN = \"\"\nTOKEN = \"\"\n", "FILE:3: sandbox.env.TOKEN: Key 'sandbox.env.TOKEN' has already been defined.", ""},
		{"TOKEN s3cret = 1\n", "FILE:1: expected '.' or '=', but got 's' instead", ""},
		{"[packages]\nindex = \"https://s3cret.test\n", "FILE:2: packages.index: " + text, ""},
		{"[packages.r]\nrepo = \"https://s3cret.test\n", "FILE:2: packages.r.repo: " + text, ""},
		{"[packages]\nhosts = \"u:s3cret@x\n", "FILE:2: packages.hosts: " + text, ""},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			doc := document{origin: origin{Kind: fromFile, Name: "FILE"}, text: []byte(strings.ReplaceAll(tt.text, "\n", end))}
			_, err := doc.decode()
			var f *fault
			if !errors.As(err, &f) {
				t.Errorf("%q: %v", doc.text, err)
				continue
			}
			if diff := cmp.Diff([]string{tt.want, tt.line}, []string{f.Error(), f.Line}); diff != "" && (end == "\n" || !strings.Contains(tt.want, `'\n'`)) {
				t.Errorf("%q (-want +got):\n%s", doc.text, diff)
			}
			// A project's policy is told the same without any of its text.
			doc.secret = true
			said := tt.want[strings.LastIndex(tt.want, ": ")+2:]
			if _, err = doc.decode(); !errors.As(err, &f) || f.Line != "" || strings.HasSuffix(f.Msg, said) != strings.Contains(said, "is not closed by") {
				t.Errorf("%q, as a project's: %v", doc.text, err)
			}
		}
	}
}

// A person sees the line below the fault, and a model does not.
func TestFaultShowsItsLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("[network]\nallow = [\"a.test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := userSettings(configFile{path: file}, []string{"AIRLOCK_LIMITS_RUNS=x"}, nil)
	var b strings.Builder
	printError(&b, err)
	want := "airlock: " + file + ":2: network.allow: the text that begins here is not closed by a quote\n    allow = [\"a.test\n" +
		"airlock: AIRLOCK_LIMITS_RUNS: limits.runs: expected value but found \"x\" instead\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if text := forModel(err).Error(); strings.Contains(text, "a.test") {
		t.Errorf("a model is told %q", text)
	}
}
