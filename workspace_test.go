package main

import (
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// rulesIn makes a person with a home, and airlock's directories as XDG has them.
func rulesIn(t *testing.T) (base string, r workspaceRules) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"people/me/.config/airlock", "people/me/.local/state/airlock/x", "people/me/project/sub", "other", "cfg"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(base, "people/me")
	return base, workspaceRules{
		places: places{
			home: home, homes: []string{home},
			config: home + "/.config/airlock", state: home + "/.local/state/airlock", cache: home + "/.cache/airlock",
		},
		configFile: base + "/cfg/mine.toml",
	}
}

func TestOpenWorkspace(t *testing.T) {
	base, r := rulesIn(t)
	link := func(name, target string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("tohome", base+"/people/me")
	link("toproject", base+"/people/me/project")
	link("tousr", "/usr/bin")
	link("dangling", base+"/none")
	link("loop", "loop")
	if err := os.WriteFile(base+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	me := base + "/people/me"
	for _, tt := range []struct{ dir, want, err string }{
		{me + "/project", me + "/project", ""},
		{me + "/project/../project/sub/", me + "/project/sub", ""},
		{base + "/toproject", me + "/project", ""},
		{base + "/other", base + "/other", ""},
		{"", "", "no directory is named"},
		{"/", "", "the root of the filesystem can't be a workspace"},
		{"/..", "", "the root of the filesystem can't be a workspace"},
		{me, "", "a home directory can't be a workspace"},
		{base + "/tohome", "", "a home directory can't be a workspace"},
		{base + "/people", "", "holds a home directory, " + me},
		{base, "", "holds a home directory, " + me},
		{me + "/.config", "", "holds airlock's own configuration, " + me + "/.config/airlock"},
		{me + "/.config/airlock", "", "holds airlock's own configuration, " + me + "/.config/airlock"},
		{me + "/.local", "", "holds airlock's own state, " + me + "/.local/state/airlock"},
		{me + "/.local/state/airlock/x", "", "lies in airlock's own state, " + me + "/.local/state/airlock"},
		{base + "/cfg", "", "holds the configuration in force, " + base + "/cfg/mine.toml, which runs could then change"},
		{base + "/none", "", "there is no such directory"},
		{base + "/dangling", "", "there is no such directory"},
		{base + "/file", "", "is not a directory"},
		{base + "/tousr", "", "belongs to the system (/usr)"},
		{"/usr", "", "belongs to the system (/usr)"},
		{"/etc", "", "belongs to the system (/etc)"},
		{"/proc/self", "", "belongs to the system (/proc)"},
		{"/dev", "", "belongs to the system (/dev)"},
		{"/var", "", "belongs to the system (/var)"},
		{"/var/tmp", "", "belongs to the system (/var)"},
		{"/home", "", "belongs to the system (/home)"},
	} {
		if _, err := os.Lstat(tt.dir); tt.dir != "" && strings.HasPrefix(tt.err, "belongs") && err != nil {
			continue // this machine has no such directory
		}
		got, err := r.open(tt.dir)
		if tt.err == "" {
			if err != nil || got != tt.want {
				t.Errorf("open(%q) = %q, %v; want %q", tt.dir, got, err, tt.want)
			}
			continue
		}
		var f *fault
		if want := "workspace: " + tomlText(tt.dir) + ": " + tt.err; !errors.As(err, &f) || f.Error() != want || f.Hint == "" {
			t.Errorf("open(%q): error\n\t%v, want\n\t%s\nand a hint", tt.dir, err, want)
		}
	}
	if err := os.Chmod(base+"/other", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(base + "/other"); os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), "you may not read it: ")) {
		t.Errorf("a directory that may not be read: %v", err)
	}
	if _, err := r.open(base + "/loop"); err == nil {
		t.Error("a link to itself was opened")
	}
}

// The state directory of a person can be anywhere; what it may not do is lie in the workspace.
func TestOpenWorkspaceWithCacheInside(t *testing.T) {
	base, r := rulesIn(t)
	r.cache = base + "/other/cache/airlock" // need not exist
	if _, err := r.open(base + "/other"); err == nil || !strings.Contains(err.Error(), "holds airlock's own cache") {
		t.Errorf("error %v", err)
	}
}

// Whoever may write a link decides what is at its end, so it must not lie in the workspace either.
func TestOpenWorkspaceWithLinksOfOurs(t *testing.T) {
	base, plain := rulesIn(t)
	for _, l := range [][2]string{
		{base + "/cfg/mine.toml", "other/mine.toml"},
		{base + "/cfg/log", "other/log"},
		{base + "/none", "other/dangling"},
		{base + "/people/me/.local/state/airlock", "other/state"},
		{"../other/mine.toml", "cfg/through.toml"},
	} {
		if err := os.Symlink(l[0], filepath.Join(base, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(base+"/cfg/mine.toml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		set func(*workspaceRules)
		err string // "" where it may be opened
	}{
		{func(r *workspaceRules) { r.logFile = base + "/cfg/log" }, ""},
		{func(r *workspaceRules) { r.configFile = base + "/other/mine.toml" }, "holds the configuration in force"},
		{func(r *workspaceRules) { r.configFile = base + "/cfg/through.toml" }, "holds the configuration in force"},
		{func(r *workspaceRules) { r.logFile = base + "/other/new" }, "holds the log file"},
		{func(r *workspaceRules) { r.logFile = base + "/other/dangling" }, "holds the log file"},
		{func(r *workspaceRules) { r.logFile = base + "/other/log" }, "holds the log file"},
		{func(r *workspaceRules) { r.state = base + "/other/state/deeper" }, "holds airlock's own state"},
	} {
		r := plain
		tt.set(&r)
		_, err := r.open(base + "/other")
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%+v: error %v, want %q", r, err, tt.err)
		}
	}
}

// Root's runs are executed as the workspace's owner, whose home is no more a workspace than root's.
func TestOpenWorkspaceOfItsOwnersHome(t *testing.T) {
	u, err := user.Current()
	if err != nil || u.HomeDir == "/" {
		t.Skip("who this is has no home")
	}
	info, err := os.Stat(u.HomeDir)
	if err != nil {
		t.Skip(err)
	}
	if uid, _ := ownerOf(info); uid != os.Geteuid() {
		t.Skip("the home is somebody else's")
	}
	_, r := rulesIn(t)
	if _, err := r.open(u.HomeDir); err == nil || !strings.Contains(err.Error(), "a home directory can't be a workspace") {
		t.Errorf("error %v", err)
	}
}

func TestSystemDirectory(t *testing.T) {
	r := workspaceRules{places: places{homes: []string{"/home/u", "/var/lib/jenkins", "/", "/usr/sbin"}}}
	for path, want := range map[string]string{
		"/tmp":                         "/tmp",
		"/tmp/x":                       "",
		"/home/u/x":                    "",
		"/srv":                         "/srv",
		"/srv/x":                       "",
		"/root":                        "/root",
		"/root/x":                      "",
		"/mnt/x":                       "",
		"/data":                        "",
		"/var/lib":                     "/var",
		"/var/lib/jenkins":             "/var",
		"/var/lib/jenkins/workspace/x": "",
		"/var/lib/other/x":             "/var",
		"/var/tmp":                     "/var",
		"/var/tmp/x":                   "",
		"/var/www/site":                "",
		"/usr/local":                   "/usr",
		"/usr/sbin/x":                  "/usr",
		"/usr/src/linux":               "",
		"/usr/srcx":                    "/usr",
		"/usrx":                        "",
		"/opt/tool":                    "/opt",
		"/nix/store/x":                 "/nix",
		"/boot":                        "/boot",
		"/proc/1":                      "/proc",
		"/sys/fs":                      "/sys",
		"/dev/shm":                     "/dev",
		"/dev/shm/x":                   "",
		"/dev/pts":                     "/dev",
	} {
		if real := realPath(path); real != path {
			continue // a link on this machine; its real path has a row or a rule of its own
		}
		if got := r.systemDirectory(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"/run": "/run", "/run/user": "/run", "/run/user/1000": "/run", "/run/user/1000/x": "", "/run/x/1000/y": "/run"} {
		if real := realPath("/run"); real != "/run" {
			t.Skip("/run is a link here")
		}
		if got := r.systemDirectory(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
}

func TestFindPlaces(t *testing.T) {
	p, err := findPlaces([]string{"HOME=/h/me/", "XDG_CONFIG_HOME=relative", "XDG_STATE_HOME=/st"})
	if err != nil {
		t.Fatal(err)
	}
	if p.home != "/h/me" || p.config != "/h/me/.config/airlock" || p.state != "/st/airlock" || p.cache != "/h/me/.cache/airlock" {
		t.Errorf("places: %+v", p)
	}
	if p.homes[0] != "/h/me" {
		t.Errorf("homes: %v", p.homes)
	}
}

func TestMakeState(t *testing.T) {
	dir := t.TempDir()
	p := places{state: filepath.Join(dir, "a/b")}
	if err := p.makeState(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p.state, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.makeState(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(p.state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want mode 0700", info.Mode(), err)
	}
	p.state = filepath.Join(dir, "file/x")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var f *fault
	if err := p.makeState(); !errors.As(err, &f) || f.Hint == "" {
		t.Errorf("error %v, want one with a hint", err)
	}
}
