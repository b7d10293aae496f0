package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/mountinfo"
)

// host answers what is set on this machine. It is asked after something has failed, to name the cause;
// whether something works is never concluded from it.
type host struct {
	read       func(path string) ([]byte, error) // os.ReadFile, but in tests
	privileged bool                              // the server is root
}

// obstacle is what keeps something from working, and what can be done about it.
type obstacle struct{ cause, mend string }

const dockerSeccomp = "if this is a container, start it with a seccomp profile that allows them (Docker and Podman: --security-opt seccomp=unconfined)"

// sysctl reads a setting by its path below /proc/sys; "" if there is no such setting.
func (h host) sysctl(name string) string {
	b, err := h.read("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// namespaceObstacle names what keeps this process from making user namespaces, or from having rights in
// them; err is what the kernel said, nil if that is not known.
func (h host) namespaceObstacle(err error) obstacle {
	const limit = "user.max_user_namespaces"
	switch {
	case h.sysctl("user/max_user_namespaces") == "0":
		return obstacle{limit + " is 0", "sudo sysctl " + limit + "=15000"}
	case !h.privileged && h.sysctl("kernel/unprivileged_userns_clone") == "0":
		return obstacle{
			"kernel.unprivileged_userns_clone is 0, so that only root may make them",
			"sudo sysctl kernel.unprivileged_userns_clone=1",
		}
	case h.appArmorRestricts():
		return h.appArmorObstacle()
	case errors.Is(err, unix.ENOSPC):
		return obstacle{
			fmt.Sprintf("%s (%s) are in use, or this is the 33rd namespace inside another", limit, h.sysctl("user/max_user_namespaces")),
			"sudo sysctl " + limit + "=15000",
		}
	case errors.Is(err, unix.EINVAL):
		return obstacle{"the kernel was built without them (CONFIG_USER_NS)", "use a kernel that has them, as every distribution's has"}
	case h.filtered():
		return obstacle{"a seccomp filter on this process refuses them, as container runtimes' do", dockerSeccomp}
	case h.label() != "":
		return obstacle{
			fmt.Sprintf("the security module that confines this process (%s) may refuse them", h.label()),
			"allow user namespaces in that policy, or start the container without it (Docker: --security-opt apparmor=unconfined, --security-opt label=disable)",
		}
	}
	return obstacle{"the kernel does not say why, and none of the known settings is in the way; a chroot is one cause", ""}
}

// insideObstacle names what keeps something from working in a user namespace that could be made.
func (h host) insideObstacle(what string, errno unix.Errno) obstacle {
	denied := errno == unix.EPERM || errno == unix.EACCES
	switch {
	case denied && h.appArmorRestricts():
		return h.appArmorObstacle()
	case what == insideProc && denied && len(h.coveredProc()) > 0:
		return obstacle{
			fmt.Sprintf("the kernel allows a new /proc only where one is visible in full, and here %s is covered", strings.Join(h.coveredProc(), ", ")),
			"container runtimes cover it; start the container with --security-opt systempaths=unconfined (Docker) or --security-opt unmask=ALL (Podman)",
		}
	case what == insideOverlay && errno == unix.ENODEV:
		return obstacle{"the kernel has no overlay file system", "sudo modprobe overlay"}
	case what == insideOverlay && (errno == unix.EINVAL || errno == unix.EPERM):
		return obstacle{
			fmt.Sprintf("the kernel is older than 5.11, or the file system of %s cannot be a writable layer (no user xattrs, or an overlay itself)", os.TempDir()),
			"set TMPDIR to a directory on ext4, xfs or btrfs, and try again",
		}
	case denied && h.filtered():
		return obstacle{"a seccomp filter on this process may refuse it, as container runtimes' do", dockerSeccomp}
	case denied && h.label() != "":
		return obstacle{
			fmt.Sprintf("the security module that confines this process (%s) may refuse it", h.label()),
			"start the container without it (Docker: --security-opt apparmor=unconfined)",
		}
	}
	return obstacle{}
}

// appArmorRestricts is true where a program without a profile of its own gets a user namespace in which it
// has no rights (Ubuntu since 23.10).
func (h host) appArmorRestricts() bool {
	return !h.privileged && h.sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1"
}

func (h host) appArmorObstacle() obstacle {
	exe, err := os.Executable()
	if err != nil {
		exe = "/usr/local/bin/airlock"
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real // profiles are attached to the file that a link leads to
	}
	return obstacle{
		"kernel.apparmor_restrict_unprivileged_userns is 1, so that only programs with an AppArmor profile may use them",
		"write this to /etc/apparmor.d/airlock\n\n" + appArmorProfile(exe) +
			"\nand load it with: sudo apparmor_parser -r /etc/apparmor.d/airlock" +
			"\n(for every program instead: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0)",
	}
}

// appArmorProfile is a profile that confines the program at path in nothing and allows it user namespaces.
// The sealed copy that init runs from has no path; it stays in the profile of what executes it.
func appArmorProfile(path string) string {
	return fmt.Sprintf(`abi <abi/4.0>,
include <tunables/global>

profile airlock "%s" flags=(unconfined) {
  userns,

  include if exists <local/airlock>
}
`, appArmorPath.Replace(path))
}

// appArmorPath escapes what is a pattern in the path of a profile.
var appArmorPath = strings.NewReplacer(
	`\`, `\\`, `"`, `\"`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `^`, `\^`, `,`, `\,`, `@`, `\@`,
)

// filtered is true if this process is under a seccomp filter.
func (h host) filtered() bool {
	b, err := h.read("/proc/self/status")
	return err == nil && strings.Contains(string(b), "\nSeccomp:\t2\n")
}

// label is the confinement of this process by AppArmor or SELinux; "" if there is none.
func (h host) label() string {
	b, err := h.read("/proc/self/attr/current")
	label := strings.TrimRight(string(b), "\x00\n")
	if err != nil || label == "unconfined" || label == "kernel" || strings.Contains(label, ":unconfined_t:") {
		return ""
	}
	return label
}

// coveredProc lists what is mounted over parts of /proc.
func (h host) coveredProc() []string {
	b, err := h.read("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var covered []string
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		// What is mounted on an empty directory, as binfmt_misc is, covers nothing.
		if len(f) > 4 && strings.HasPrefix(f[4], "/proc/") && f[4] != "/proc/sys/fs/binfmt_misc" {
			covered = append(covered, mountinfo.Unescape(f[4]))
		}
	}
	return covered
}

// cgroupMend is how a host like this gives airlock a cgroup that holds limits.
func (h host) cgroupMend() string {
	controllers, err := h.read("/sys/fs/cgroup/cgroup.controllers")
	switch {
	case errors.Is(err, fs.ErrNotExist) && h.privileged:
		return "mount the memory and pids cgroup hierarchies writable for airlock"
	case errors.Is(err, fs.ErrNotExist):
		return "this host uses cgroup version 1, which only root can use; boot it with version 2 (systemd.unified_cgroup_hierarchy=1), or run airlock as root"
	case !strings.Contains(string(controllers), controllerMemory):
		return "the memory and pids controllers are not available in this container or on this kernel (cgroup_disable=?)"
	}
	if _, err := h.read("/run/systemd/private"); errors.Is(err, fs.ErrNotExist) {
		return "have an administrator make a cgroup with the memory and pids controllers, give it to this user (chown of the directory and of cgroup.procs, cgroup.subtree_control), and start airlock in it"
	}
	if h.privileged {
		return "systemd-run --scope -p Delegate=yes airlock"
	}
	return "start airlock in a scope of its own: systemd-run --user --scope -p Delegate=yes airlock"
}

// container says what kind of container this process runs in, and what tells; "" for none that is known.
func (h host) container() (kind, evidence string) {
	exists := func(path string) bool {
		_, err := h.read(path)
		return err == nil
	}
	if b, err := h.read("/proc/1/environ"); err == nil {
		for v := range strings.SplitSeq(string(b), "\x00") {
			if kind, ok := strings.CutPrefix(v, "container="); ok && kind != "" {
				return "a container of " + kind, "environment of process 1"
			}
		}
	}
	switch {
	case exists("/run/.containerenv"):
		return "a Podman container", "/run/.containerenv"
	case exists("/.dockerenv"):
		return "a Docker container, or an image made from one", "/.dockerenv"
	}
	b, _ := h.read("/proc/1/cgroup")
	for _, m := range parseMemberships(string(b)) {
		for _, name := range []string{"docker", "kubepods", "libpod", "containerd", "buildkit", "lxc"} {
			if strings.Contains(m.path, name) {
				return "a container (" + name + ")", "cgroup " + m.path
			}
		}
	}
	return "", ""
}
