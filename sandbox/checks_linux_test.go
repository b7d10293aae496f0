package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func named(checks []Check, name string) (Check, bool) {
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return Check{}, false
	}
	return checks[i], true
}

func TestChecks(t *testing.T) {
	before, _ := filepath.Glob(filepath.Join(os.TempDir(), "airlock-check-*"))
	checks := Checks(t.Context())
	for _, c := range checks {
		t.Logf("%-5v %s: %s", c.OK, c.Name, c.Detail)
		if c.Name == "" || c.Promise == "" || c.Detail == "" {
			t.Errorf("incomplete: %+v", c)
		}
	}
	if c, _ := named(checks, "user namespaces"); !c.OK {
		lacks(t, "userns", c.Detail)
	}
	for _, name := range []string{insideMounts, insideProc, insideRights} {
		if c, _ := named(checks, name); !c.OK {
			lacks(t, "userns", c.Detail)
		}
	}
	if c, _ := named(checks, insideOverlay); !c.OK {
		lacks(t, "overlay", c.Detail)
	}
	after, _ := filepath.Glob(filepath.Join(os.TempDir(), "airlock-check-*"))
	if len(after) > len(before) {
		t.Errorf("left behind: %v", after)
	}
}

// The conditions are made for real, in a user namespace where this process may make them.
func TestChecksNameTheCause(t *testing.T) {
	for _, tt := range []struct {
		condition, check, detail, mend string
	}{
		{"none", "user namespaces", "", ""},
		{"no more namespaces", "user namespaces", "user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000"},
		{"no network namespaces", "net namespaces", "user.max_net_namespaces is 0", "sudo sysctl user.max_net_namespaces=15000"},
		{"covered proc", insideProc, "/proc/fs is covered", "systempaths=unconfined"},
	} {
		t.Run(tt.condition, func(t *testing.T) {
			var checks []Check
			runChild(t, child("TestChildChecks", tt.condition, unix.CLONE_NEWUSER|unix.CLONE_NEWNS), &checks)
			c, ok := named(checks, tt.check)
			if !ok {
				t.Fatalf("no check %q in %+v", tt.check, checks)
			}
			if wantOK := tt.detail == ""; c.OK != wantOK {
				t.Errorf("OK is %v: %s", c.OK, c.Detail)
			}
			if !strings.Contains(c.Detail, tt.detail) || !strings.Contains(c.Mend, tt.mend) {
				t.Errorf("got detail %q, mend %q; want %q, %q", c.Detail, c.Mend, tt.detail, tt.mend)
			}
		})
	}
}

func TestChildChecks(t *testing.T) {
	var err error
	switch condition := childArgument(t); condition {
	case "no more namespaces":
		err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	case "no network namespaces":
		err = os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0)
	case "covered proc":
		err = unix.Mount("none", "/proc/fs", "tmpfs", 0, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	reportToParent(t, Checks(t.Context()))
}

// settings is a machine that has these files and no others.
func settings(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if s, ok := files[path]; ok {
			return []byte(s), nil
		}
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	}
}

func TestNamespaceObstacle(t *testing.T) {
	const appArmor = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	for _, tt := range []struct {
		name        string
		files       map[string]string
		root        bool
		err         error
		cause, mend string
	}{
		{"limit 0", map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, false, unix.ENOSPC, "user.max_user_namespaces is 0", "sudo sysctl"},
		{"limit 0 as root", map[string]string{"/proc/sys/user/max_user_namespaces": "0\n"}, true, unix.ENOSPC, "user.max_user_namespaces is 0", "sudo sysctl"},
		{"limit used up", map[string]string{"/proc/sys/user/max_user_namespaces": "7\n"}, false, unix.ENOSPC, "user.max_user_namespaces (7) are in use", "sudo sysctl"},
		{"Debian", map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, false, unix.EPERM, "only root may", "unprivileged_userns_clone=1"},
		{"Debian as root", map[string]string{"/proc/sys/kernel/unprivileged_userns_clone": "0\n"}, true, unix.EPERM, "does not say why", ""},
		{"Ubuntu", map[string]string{appArmor: "1\n"}, false, unix.EACCES, "AppArmor profile", "userns,"},
		{"Ubuntu, switched off", map[string]string{appArmor: "0\n"}, false, unix.EACCES, "does not say why", ""},
		{"Docker", map[string]string{"/proc/self/status": "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"}, false, unix.EPERM, "seccomp filter", "seccomp=unconfined"},
		{"no filter", map[string]string{"/proc/self/status": "Name:\tx\nSeccomp:\t0\n"}, false, unix.EPERM, "does not say why", ""},
		{"label", map[string]string{"/proc/self/attr/current": "docker-default (enforce)\n"}, false, unix.EACCES, "docker-default (enforce)", "apparmor=unconfined"},
		{"unconfined", map[string]string{"/proc/self/attr/current": "unconfined\n"}, false, unix.EACCES, "does not say why", ""},
		{"kernel without", nil, false, unix.EINVAL, "CONFIG_USER_NS", "kernel"},
	} {
		o := host{read: settings(tt.files), privileged: tt.root}.namespaceObstacle(tt.err)
		if !strings.Contains(o.cause, tt.cause) || !strings.Contains(o.mend, tt.mend) {
			t.Errorf("%s: cause %q, mend %q; want %q, %q", tt.name, o.cause, o.mend, tt.cause, tt.mend)
		}
	}
}

// Where AppArmor is in the way, at the clone or later, the mend is the whole profile, for the binary that runs, and how it
// is loaded.
func TestAppArmorMend(t *testing.T) {
	h := host{read: settings(map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"})}
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]obstacle{
		"no namespaces": h.namespaceObstacle(unix.EACCES),
		"no rights":     h.insideObstacle(insideMounts, unix.EPERM),
	} {
		for _, want := range []string{"write this to /etc/apparmor.d/airlock\n", appArmorProfile(exe), "sudo apparmor_parser -r /etc/apparmor.d/airlock"} {
			if !strings.Contains(o.mend, want) {
				t.Errorf("%s: the mend lacks %q:\n%s", name, want, o.mend)
			}
		}
	}
}

func TestAppArmorProfile(t *testing.T) {
	const want = `abi <abi/4.0>,
include <tunables/global>

profile airlock "/opt/a b/\{x\}/air\*lock" flags=(unconfined) {
  userns,

  include if exists <local/airlock>
}
`
	if got := appArmorProfile("/opt/a b/{x}/air*lock"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestContainer(t *testing.T) {
	for _, tt := range []struct {
		name     string
		files    map[string]string
		kind     string
		evidence string
	}{
		{"none", map[string]string{"/proc/1/cgroup": "0::/init.scope\n", "/proc/1/environ": "PATH=/bin\x00"}, "", ""},
		{"Docker", map[string]string{"/.dockerenv": ""}, "a Docker container, or an image made from one", "/.dockerenv"},
		{"Podman", map[string]string{"/run/.containerenv": ""}, "a Podman container", "/run/.containerenv"},
		{"nspawn", map[string]string{"/proc/1/environ": "A=b\x00container=systemd-nspawn\x00"}, "a container of systemd-nspawn", "environment of process 1"},
		{"Kubernetes", map[string]string{"/proc/1/cgroup": "5:memory:/kubepods/besteffort/pod1/x\n"}, "a container (kubepods)", "cgroup /kubepods/besteffort/pod1/x"},
	} {
		kind, evidence := host{read: settings(tt.files)}.container()
		if kind != tt.kind || evidence != tt.evidence {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, kind, evidence, tt.kind, tt.evidence)
		}
	}
}

func TestCgroupMend(t *testing.T) {
	const v2 = "/sys/fs/cgroup/cgroup.controllers"
	for _, tt := range []struct {
		name  string
		files map[string]string
		root  bool
		want  string
	}{
		{"version 1", nil, false, "version 1, which only root can use"},
		{"version 1 as root", nil, true, "mount the memory and pids"},
		{"systemd", map[string]string{v2: "cpu memory pids\n", "/run/systemd/private": ""}, false, "systemd-run --user --scope -p Delegate=yes"},
		{"no systemd", map[string]string{v2: "cpu memory pids\n"}, false, "administrator"},
		{"disabled", map[string]string{v2: "cpu\n"}, false, "not available"},
	} {
		if got := (host{read: settings(tt.files), privileged: tt.root}).cgroupMend(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
