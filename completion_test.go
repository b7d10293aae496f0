package main

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// completes asks a shell what it would complete a line with.
func completes(t *testing.T, shell, script, line string) []string {
	t.Helper()
	words := strings.Split(line, " ")
	var cmd *exec.Cmd
	switch shell {
	case "bash":
		cmd = exec.Command("bash", "-c", script+`
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _airlock; printf '%s\n' "${COMPREPLY[@]}"`)
		cmd.Args = append(append(cmd.Args, "bash"), words...)
	case "zsh": // what it tells its completion system, which needs a terminal
		cmd = exec.Command("zsh", "-fc", `compdef() {}
_describe() { print -l -- ${(P)2} }
_arguments() { print -l -- $@ }
`+script+`
words=("$@") CURRENT=$#; _airlock`)
		cmd.Args = append(append(cmd.Args, "zsh"), words...)
	case "fish":
		cmd = exec.Command("fish", "--no-config", "-c", script+"\ncomplete -C $argv[1]", line)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", shell, err, out)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' || r == '\t' || r == ':' })
}

// TestCompletion has each shell complete a few lines.
func TestCompletion(t *testing.T) {
	for shell, write := range map[string]func([]command) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				if slices.Contains(strings.Split(*require, ","), "programs") {
					t.Fatal("-require=programs: ", err)
				}
				t.Skip("no " + shell)
			}
			script := write(commands())
			for line, want := range map[string]string{
				"airlock cl":               "clean",
				"airlock client --w":       "--write",
				"airlock run --backend na": "native",
			} {
				got := completes(t, shell, script, line)
				if !slices.ContainsFunc(got, func(word string) bool { return strings.Contains(word, want) }) {
					t.Errorf("%s: %q, want %s", line, got, want)
				}
			}
			if got := completes(t, shell, script, "airlock client cod"); !strings.Contains(strings.Join(got, " "), "codex") {
				t.Errorf("a client: %q", got)
			}
		})
	}
}

// Every flag that a command's help describes is one of its flags: completion goes by the help.
func TestHelpNamesFlags(t *testing.T) {
	for _, c := range commands() {
		for _, f := range flagsOf(c) {
			arg := "--" + f.name
			if f.value != "" {
				arg += "=1"
			}
			var stderr bytes.Buffer
			status := c.run(t.Context(), app{stdout: &stderr, stderr: &stderr}, []string{arg, "--no-such-flag"})
			if status != exitUsage || !strings.Contains(stderr.String(), "--no-such-flag") {
				t.Errorf("airlock %s %s: %s", c.name, arg, stderr.String())
			}
		}
	}
}

func TestDiffPainter(t *testing.T) {
	var b bytes.Buffer
	w, flush := paint(true).diff(&b)
	for _, part := range []string{"--- a\n+", "++ b\n@@ -1", " @@\n-x\n+y\n z\nend"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1m--- a\x1b[0m\n\x1b[1m+++ b\x1b[0m\n\x1b[36m@@ -1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n z\nend"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
}
