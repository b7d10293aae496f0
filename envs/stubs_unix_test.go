//go:build unix

package envs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"airlock/envs"
)

// A stand-in refuses what installs, whoever calls it, and executes the program itself for the rest.
func TestStubs(t *testing.T) {
	store, err := envs.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stubs, err := store.Stubs(envs.StubNames)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := store.Stubs(envs.StubNames); err != nil || again != stubs {
		t.Errorf("a second time: %s, %v", again, err)
	}
	bin := t.TempDir()
	for _, name := range envs.StubNames {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho real \"$0\" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for command, refused := range map[string]bool{
		"pip install six": true, "pip3 --quiet install -r x": true, "pip3.11 download six": true, "pip list": false, "pip show install": false, "pip install --help": false, "pip": false, "pip --version": false,
		"pipx run x": true, "pipx list": false, "uv pip install six": true, "uv add six": true, "uv run x": false, "uv --version": false, "conda install x": true, "conda list": false, "conda env create": true,
		"apt-get -y install x": true, "apt list": false, "npm i": true, "npm run install": false, "npm ci --offline": false, "yarn": true, "yarn run x": false, "poetry add x": true, "easy_install x": true,
		"R CMD INSTALL x": true, "R -e 'install.packages(\"x\")'": true, "Rscript x.R": false, "pip list '*' 'a b'": false,
	} {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Env = []string{"PATH=" + stubs + ":" + bin + ":/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		isRefused := errors.As(err, &exit) && exit.ExitCode() == 126 && strings.Contains(string(out), "refused") && strings.Contains(string(out), "package_install")
		if isRefused != refused || !refused && !strings.HasPrefix(string(out), "real ") {
			t.Errorf("%s: refused %t, want %t: %v: %s", command, isRefused, refused, err, out)
		}
	}
	out, err := exec.Command("/bin/sh", "-c", "PATH="+stubs+":"+bin+"; pip list 'a b' '*'").CombinedOutput()
	if want := "real " + bin + "/pip list a b *\n"; err != nil || string(out) != want {
		t.Errorf("the arguments: %q, %v; want %q", out, err, want)
	}
}
