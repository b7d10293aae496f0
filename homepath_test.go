package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A leading "~" is the home directory in every key that takes a path, wherever it is set.
func TestHomeInPaths(t *testing.T) {
	const home = "/home/u"
	text := map[string]string{
		"sandbox.read": `["~/data", "~", "/srv", "/srv/~/x"]`, "packages.cert": `"~/ca.pem"`,
		"python.interpreter": `"~/bin/python3"`, "python.deps": `["~/lib/"]`, "sandbox.hide": `["~/x"]`,
	}
	want := map[string]any{
		"sandbox.read": []string{home + "/data", home, "/srv", "/srv/~/x"}, "packages.cert": home + "/ca.pem",
		"python.interpreter": home + "/bin/python3", "python.deps": []string{home + "/lib"}, "sandbox.hide": []string{"~/x"},
	}
	for _, name := range pathKeys {
		if text[name] == "" {
			t.Errorf("%s has no value here", name)
		}
	}
	for name, value := range text {
		key, _ := findKey(name)
		section, last, _ := strings.Cut(name, ".")
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte("["+section+"]\n"+last+" = "+value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []struct {
			how  string
			file string
			env  []string
		}{
			{"file", file, nil},
			{"variable", file + ".none", []string{key.variable() + "=" + strings.Trim(value, `"`)}},
		} {
			s, err := userSettings(configFile{path: from.file}, append(from.env, "HOME="+home), nil)
			if err != nil {
				t.Errorf("%s by a %s: %v", name, from.how, err)
				continue
			}
			if diff := cmp.Diff(want[name], key.get(&s.Config)); diff != "" {
				t.Errorf("%s by a %s (-want +got):\n%s", name, from.how, diff)
			}
		}
	}
}

// What is no home directory of the person's is refused, and the error says what to write.
func TestOtherHomes(t *testing.T) {
	for text, want := range map[string]string{
		"[sandbox]\nread = [\"~other/data\"]\n": `sandbox.read: "~other/data" is not an absolute path; write it from "/" on, or from "~/", which is your home directory`,
		"[python]\ndeps = [\"lib\"]\n":          `python.deps: "lib": not an absolute path; write it from "/" on, or from "~/", which is your home directory`,
		"[python]\ndeps = [\"/lib/\"]\n":        `python.deps: "/lib/": not a clean path; write "/lib"`,
	} {
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := userSettings(configFile{path: file}, []string{"HOME=/home/u"}, nil); err == nil || err.Error() != file+":2: "+want {
			t.Errorf("error\n\t%v, want\n\t%s", err, want)
		}
	}
}

// The paths that flags and their variables name, too: a client's list of arguments passes through no shell.
func TestHomeInFlags(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{"ws", "conf"} {
		if err := os.Mkdir(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "conf", "a.toml"), []byte("[limits]\nruns = 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, by := range []struct {
		flags   commonFlags
		environ []string
	}{
		{commonFlags{workspace: "~/ws", config: "~/conf/a.toml", logFile: "~/log"}, nil},
		{commonFlags{}, []string{"AIRLOCK_WORKSPACE=~/ws", "AIRLOCK_CONFIG=~/conf/a.toml", "AIRLOCK_LOG_FILE=~/log"}},
	} {
		s, err := by.flags.setUp(append(by.environ, "HOME="+home))
		if err != nil {
			t.Fatal(err)
		}
		if s.workspace != filepath.Join(home, "ws") || s.user.Limits.Runs != 3 || s.rules.logFile != filepath.Join(home, "log") {
			t.Errorf("workspace %s, runs %d, log file %s", s.workspace, s.user.Limits.Runs, s.rules.logFile)
		}
	}
}
