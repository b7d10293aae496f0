package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each version manager's programs are there, and what it or its package managers keep secret beside them is not.
func TestEachToolchain(t *testing.T) { onEach(t, testEachToolchain) }

func testEachToolchain(t *testing.T, n Backend) {
	toolchains := []struct {
		name, program string
		onPath        bool // it is looked for where PATH leads, and only there
		secrets       []string
	}{
		{"pyenv", ".pyenv/versions/3.12.1/bin/python", false, []string{".pyenv/versions/3.12.1/pip.conf", ".pyenv/versions/3.12.1/envs/e/pip.conf"}},
		{"nvm", ".nvm/versions/node/v22/bin/node", false, []string{".nvm/versions/node/v22/etc/npmrc", ".nvm/.npmrc"}},
		{"rustup", ".rustup/toolchains/stable/bin/rustc", false, []string{".cargo/credentials", ".cargo/credentials.toml"}},
		{"go", "go/bin/tool", false, []string{"go/pkg/mod/cache/x", ".config/go/env", ".netrc"}},
		{"asdf", ".asdf/installs/nodejs/22/bin/node", false, []string{".asdf/installs/nodejs/22/etc/npmrc", ".asdf/installs/python/3.12/pip.conf"}},
		{"mise", ".local/share/mise/installs/node/22/bin/node", false, []string{".local/share/mise/installs/node/22/etc/npmrc", ".local/share/mise/installs/python/3/pip.conf"}},
		{"uv", ".local/share/uv/python/cpython-3.12/bin/python", false, []string{".local/share/uv/credentials/x", ".local/share/uv/tools/t/pip.conf"}},
		{"pipx", ".local/share/pipx/venvs/t/bin/t", false, []string{".local/share/pipx/venvs/t/pip.conf"}},
		{"conda", "miniconda3/bin/conda", false, []string{"miniconda3/.condarc", "miniconda3/pip.conf", "miniconda3/envs/e/pip.conf", "miniconda3/envs/e/etc/npmrc", "miniconda3/etc/npmrc"}},
		{"linuxbrew", ".linuxbrew/bin/brew", false, []string{".linuxbrew/etc/npmrc"}},
		{"fnm", ".local/share/fnm/node-versions/v22/installation/bin/node", false, []string{".local/share/fnm/node-versions/v22/installation/etc/npmrc"}},
		{"volta", ".volta/tools/image/node/22/bin/node", false, []string{".volta/tools/image/node/22/etc/npmrc"}},
		{"sdkman", ".sdkman/candidates/gradle/8/bin/gradle", false, []string{".sdkman/candidates/gradle/8/gradle.properties"}},
		{"pnpm", ".local/share/pnpm/nodejs/22/bin/node", true, []string{".local/share/pnpm/nodejs/22/etc/npmrc"}},
	}
	home := realTempDir(t)
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := "/usr/bin"
	var programs, secrets []string
	for _, tc := range toolchains {
		write(tc.program, "#!/bin/sh\necho "+tc.name+" runs\n")
		programs = append(programs, tc.program)
		for _, secret := range tc.secrets {
			write(secret, "SECRET of "+tc.name+"\n")
			secrets = append(secrets, secret)
		}
		if tc.onPath {
			path = filepath.Join(home, filepath.Dir(tc.program)) + ":" + path
		}
	}
	system, err := HostSystem([]string{"PATH=" + path, "HOME=" + home}, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, "sh", "-c", "cd "+home+"; for p in "+strings.Join(programs, " ")+"; do ./$p; done; cat "+strings.Join(secrets, " ")+" 2>/dev/null; true")
	spec.Mounts = system.Mounts
	_, out := doRun(t, n, spec, "")
	for _, tc := range toolchains {
		if !strings.Contains(out, tc.name+" runs\n") {
			t.Errorf("%s: its program does not run", tc.name)
		}
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "SECRET") {
			t.Error("a run reads the ", line)
		}
	}
	for _, secret := range secrets { // the control
		if b, err := os.ReadFile(filepath.Join(home, secret)); err != nil || !strings.Contains(string(b), "SECRET") {
			t.Errorf("control: %q, %v", b, err)
		}
	}
}
