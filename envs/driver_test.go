package envs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The driver takes the first pip that can do what is needed, wherever it is, and tells of one that is too old. It is
// asked without executing any of them.
func TestFindPip(t *testing.T) {
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip("the host has no Python: ", err)
	}
	functions, _, _ := strings.Cut(driver, "\ndef probe(")
	for _, tt := range []struct{ pip, wheel, where, old string }{
		{"23.0.1", "22.0.2", "site", ""},
		{"22.0.2", "23.0.1", "wheel", ""},
		{"22.2", "22.0.2", "", "22.2"},
		{"22.3", "", "site", ""},
		{"100.1.dev0", "", "site", ""},
		{"", "23.0.1", "wheel", ""},
		{"", "21.3.1", "", "21.3.1"},
		{"", "", "", ""},
	} {
		dir := t.TempDir()
		write := func(name, content string) {
			t.Helper()
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("ensurepip/__init__.py", "")
		if tt.pip != "" {
			write("pip/__init__.py", "raise SystemExit('it was executed')\n\n__version__ = \""+tt.pip+"\"\n")
		}
		if tt.wheel != "" {
			write("ensurepip/_bundled/pip-"+tt.wheel+"-py3-none-any.whl", "")
		}
		// What the host itself has does not count here.
		code := "import sys; sys.path = [" + quote(dir) + "] + [p for p in sys.path if 'packages' not in p]\n" +
			strings.Replace(functions, "/usr/share/python-wheels/", dir+"/none/", 1) + "\nprint(json.dumps(find_pip()))\n"
		out, err := exec.Command(python, "-I", "-B", "-c", code).CombinedOutput()
		var got [2]string
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		where := map[string]string{"site": dir, "wheel": filepath.Join(dir, "ensurepip/_bundled/pip-"+tt.wheel+"-py3-none-any.whl"), "": ""}[tt.where]
		if err != nil || got != [2]string{where, tt.old} {
			t.Errorf("pip %q, wheel %q: %q, %v: %s; want %q, %q", tt.pip, tt.wheel, got, err, out, where, tt.old)
		}
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "\\'") + "'" }
