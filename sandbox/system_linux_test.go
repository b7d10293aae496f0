package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// homeWithToolchains is a home directory as people have it, in which only toolchains may be seen.
func homeWithToolchains(t *testing.T) string {
	t.Helper()
	home := realTempDir(t)
	for name, content := range map[string]string{
		".pyenv/shims/python-of-the-test":       "#!/bin/sh\necho python at \"$PYENV_ROOT\"\n",
		".pyenv/versions/3.12.1/lib/x":          "x",
		".cargo/bin/cargo-of-the-test":          "#!/bin/sh\necho cargo\n",
		".cargo/credentials.toml":               "SECRET",
		".nvm/versions/node/v22/bin/node":       "#!/bin/sh\necho node\n",
		".nvm/versions/node/v22/etc/npmrc":      "SECRET",
		".nvm/.npmrc":                           "SECRET",
		".pyenv/versions/3.12/pip.conf":         "SECRET",
		".local/share/uv/python/x/bin/python":   "#!/bin/sh\necho uv\n",
		".local/share/uv/credentials/x":         "SECRET",
		".local/bin/tool-of-the-test":           "#!/bin/sh\necho tool\n",
		".ssh/id_rsa":                           "SECRET",
		".netrc":                                "SECRET",
		"project/node_modules/.bin/not-visible": "#!/bin/sh\n",
	} {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

func TestToolchains(t *testing.T) { onEach(t, testToolchains) }

func testToolchains(t *testing.T, n Backend) {
	home := homeWithToolchains(t)
	if err := os.Symlink("v22", home+"/.nvm/versions/node/current"); err != nil {
		t.Fatal(err)
	}
	path := []string{home + "/.pyenv/shims", home + "/project/node_modules/.bin", home + "/.cargo/bin", home + "/.nvm/versions/node/v22/bin", "relative", home + "/.local/bin", home, "/usr/bin"}
	// HOME is another directory than the one that PATH leads into.
	system, err := HostSystem([]string{"PATH=" + strings.Join(path, ":"), "HOME=" + realTempDir(t)}, os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	wantPath := []string{path[0], path[2], path[3], path[5], "/usr/bin"}
	if got := system.Path[:len(wantPath)]; !slices.Equal(got, wantPath) {
		t.Errorf("PATH begins with %q, want %q", got, wantPath)
	}
	for name, want := range map[string]bool{
		"/.pyenv/versions/3.12.1/lib/x": true, "/.cargo/bin": true, "/.local/share/uv/python": true, "/.nvm/versions/node/v22": true,
		"/.cargo/credentials.toml": false, "/.cargo": false, "/.nvm/.npmrc": false, "/.pyenv/versions/3.12/pip.conf": false, "/.nvm/versions/node/v22/etc/npmrc": false,
		"": false, "/.ssh/id_rsa": false, "/project": false,
	} {
		if got := system.Visible(home + name); got != want {
			t.Errorf("Visible(%q) is %v", name, got)
		}
	}
	if !slices.Contains(system.Env, "PYENV_ROOT="+home+"/.pyenv") {
		t.Errorf("Env is %q", system.Env)
	}

	spec := testSpec(t, "sh", "-c", `python-of-the-test; cargo-of-the-test; node; tool-of-the-test
cd "$0"; cat .pyenv/versions/3.12/pip.conf .cargo/credentials.toml .nvm/.npmrc .nvm/versions/node/v22/etc/npmrc .nvm/versions/node/current/etc/npmrc .local/share/uv/credentials/x .ssh/id_rsa .netrc 2>/dev/null
ls -A . .cargo; (echo x > .pyenv/x) 2>&1`, home)
	spec.Env = append([]string{"PATH=" + strings.Join(system.Path, ":")}, system.Env...)
	spec.Mounts = system.Mounts
	_, out := doRun(t, n, spec, "")
	for _, want := range []string{"python at " + home + "/.pyenv\n", "cargo\n", "node\n", "tool\n", "Read-only file system"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	for _, not := range []string{"SECRET", ".ssh", "project", "credentials"} {
		if strings.Contains(out, not) {
			t.Errorf("output holds %q:\n%s", not, out)
		}
	}
}

// What runs could have put there shows nothing to later ones.
func TestToolchainsThroughAWorkspace(t *testing.T) {
	home, ws, other := realTempDir(t), realTempDir(t), realTempDir(t)
	secret := realTempDir(t)
	for _, dir := range []string{ws + "/go/bin", other + "/go/bin"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		ws + "/.nvm": secret, ws + "/rbenv": secret, other + "/.volta": secret, other + "/.cargo": ".", other + "/bin": secret,
		home + "/.rbenv": ws + "/rbenv", home + "/.pyenv": secret,
	} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, path, home string
		untrusted        []string
		want             bool
	}{
		{"control: the user's own link", "/usr/bin", home, nil, true},
		{"PATH leads into the workspace", ws + "/go/bin", "/nowhere", []string{ws}, false},
		{"PATH leads into another one", other + "/go/bin", "/nowhere", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			system, err := HostSystem([]string{"PATH=" + c.path, "HOME=" + c.home}, os.Geteuid(), os.Getegid(), c.untrusted...)
			if err != nil {
				t.Fatal(err)
			}
			if got := system.Visible(secret); got != c.want {
				t.Errorf("what the link leads to can be seen: %v", got)
			}
		})
	}
	t.Run("the user's link leads through the workspace", func(t *testing.T) {
		if err := os.Remove(home + "/.pyenv"); err != nil {
			t.Fatal(err)
		}
		for _, untrusted := range []string{"/nowhere", ws} {
			system, err := HostSystem([]string{"PATH=/usr/bin", "HOME=" + home}, os.Geteuid(), os.Getegid(), untrusted)
			if err != nil {
				t.Fatal(err)
			}
			if got := system.Visible(secret); got == (untrusted == ws) {
				t.Errorf("with %s untrusted what the link leads to can be seen: %v", untrusted, got)
			}
		}
	})
}

func TestSystemIsAsTheHostHasIt(t *testing.T) { onEach(t, testSystemIsAsTheHostHasIt) }

func testSystemIsAsTheHostHasIt(t *testing.T, n Backend) {
	system, err := HostSystem(os.Environ(), os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/bin", "/lib", "/usr/bin", "/sbin"} {
		if _, err := os.Stat(dir); err == nil && !system.Visible(dir) {
			t.Errorf("%s can't be seen", dir)
		}
	}
	for _, p := range []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/machine-id", "/etc/passwd", "/root", "/var/run", "/sys"} {
		if system.Visible(p) {
			t.Errorf("the host's %s can be seen", p)
		}
	}
	out := shell(t, n, `for d in /bin /lib /sbin; do readlink $d || echo dir; done; cat /etc/passwd /etc/group; ls /etc/ssl/certs | head -1; date +%Z`)
	for _, dir := range []string{"/bin", "/lib", "/sbin"} {
		text, err := os.Readlink(dir)
		if err != nil {
			text = "dir"
		}
		if !strings.Contains(out, text+"\n") {
			t.Errorf("%s is not %s:\n%s", dir, text, out)
		}
	}
	a := system.Account
	if !strings.Contains(out, a.Name+":x:") || strings.Contains(out, "daemon:") {
		t.Errorf("passwd is the host's, or lacks %s:\n%s", a.Name, out)
	}
}

func TestAccountFiles(t *testing.T) {
	a := Account{Name: "ann", Group: "staff", UID: 1000, GID: 50, Home: "/home/ann", Shell: "/bin/sh"}
	files := map[string]string{}
	for _, m := range a.files() {
		files[m.Target] = string(m.Content)
	}
	if got, want := files["/etc/passwd"], "root:x:0:0:root:/root:/usr/sbin/nologin\nann:x:1000:50::/home/ann:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"; got != want {
		t.Errorf("passwd is %q", got)
	}
	if got, want := files["/etc/group"], "root:x:0:\nstaff:x:50:\nnogroup:x:65534:\n"; got != want {
		t.Errorf("group is %q", got)
	}
	if got := field("a:b", "user"); got != "user" {
		t.Errorf("a name with a colon became %q", got)
	}
}

// Two runs see a path by its link and by its real name, whichever of the caller's paths came first.
func TestLinkedPathIsMadeAgain(t *testing.T) { onEach(t, testLinkedPathIsMadeAgain) }

func testLinkedPathIsMadeAgain(t *testing.T, n Backend) {
	dir := realTempDir(t)
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real/f"), []byte("content\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	mounts, err := Show(filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	out := shell(t, n, "cat "+dir+"/link/f "+dir+"/real/f; readlink "+dir+"/link", func(s *Spec) {
		s.Mounts = append(append(s.Mounts, mounts...), mounts...)
	})
	if out != "content\ncontent\nreal\n" {
		t.Errorf("got %q", out)
	}
}
