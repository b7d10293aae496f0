package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// settingsV2 are the values of version 2's control files that hold the limits of one controller.
func settingsV2(controller string, l Limits) []setting {
	switch {
	case controller == controllerPids && l.Processes > 0:
		return []setting{{"pids.max", strconv.Itoa(l.Processes + initHeadroom), false}}
	case controller == controllerMemory && l.Memory > 0:
		return []setting{
			{"memory.max", strconv.FormatInt(l.Memory, 10), false},
			{"memory.swap.max", "0", true}, // missing where swap is not accounted for
			// The whole run is killed, not its largest process: what a run did without one of its
			// processes must not land.
			{"memory.oom.group", "1", false},
		}
	case controller == controllerCPU && l.CPU > 0:
		return []setting{
			{"cpu.max", fmt.Sprintf("%d %d", cpuQuota(l.CPU), cpuPeriod), false},
			{"cpu.weight", strconv.Itoa(100 * cgroupWeight / 1000), true},
		}
	}
	return nil
}

const (
	cpuPeriod   = 100_000 // microseconds
	minCPUQuota = 1_000   // microseconds; the kernel refuses less
)

// cpuQuota is how many microseconds of each period all processes of a run may compute.
func cpuQuota(cores float64) int { return max(int(cores*cpuPeriod), minCPUQuota) }

// findV2 finds the directory of a version 2 hierarchy in which cgroups with the wanted controllers may be
// made, for a process that lives in own; top is where the hierarchy is mounted. The rule that shapes it
// is "no internal processes": a cgroup that passes controllers on to children has no process itself.
//
//  1. own passes them on already. (Only the root of the hierarchy can, while it has processes.)
//  2. own holds nobody but this server: the server moves into a child of own, and own passes them on.
//  3. The nearest cgroup above passes them on already, and the kernel lets us make children there: for
//     root, or a user's slice under a systemd that delegates it. Nothing of it is changed.
//
// If none of these can be had, the error says why the second, the one that a user can bring about, failed.
func findV2(top, own string, wanted []string) (hierarchy, error) {
	leafMove.Lock()
	defer leafMove.Unlock()
	if isServerLeaf(filepath.Base(own)) {
		own = filepath.Dir(own) // we have been through step 2
	}
	h, err := passesOn(own, wanted)
	if err == nil {
		return h, nil
	}
	if err2 := moveToLeaf(own, wanted); err2 == nil {
		return passesOn(own, wanted)
	} else {
		err = err2
	}
	for dir := own; dir != top && len(dir) > len(top); {
		dir = filepath.Dir(dir)
		if h, err3 := passesOn(dir, wanted); err3 == nil {
			return h, nil
		}
	}
	return hierarchy{}, err
}

// leafMove makes runs that start at once find or make one leaf.
var leafMove sync.Mutex

var errNothingToPass = errors.New("this cgroup has none of the controllers that are needed")

// passesOn says whether children of dir get controllers, and whether we may make some and move processes
// from below dir to there (for which the kernel asks dir's cgroup.procs to be writable).
func passesOn(dir string, wanted []string) (hierarchy, error) {
	enabled, err := readControllers(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return hierarchy{}, err
	}
	usable := both(wanted, enabled)
	if len(usable) == 0 {
		return hierarchy{}, fmt.Errorf("%s passes none of %s on to its children", dir, strings.Join(wanted, ", "))
	}
	if err := writable(dir); err != nil {
		return hierarchy{}, err
	}
	if err := writable(filepath.Join(dir, "cgroup.procs")); err != nil {
		return hierarchy{}, err
	}
	return hierarchy{version: 2, base: dir, controllers: usable}, nil
}

// moveToLeaf moves this process, and those it has started, into a child of own, and lets own pass the
// wanted controllers on to its children. If the second cannot be had, the first is undone. It does
// nothing if a process that is not ours lives in own: moving strangers is not ours to do.
func moveToLeaf(own string, wanted []string) (err error) {
	available, err := readControllers(filepath.Join(own, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enable := both(wanted, available)
	if len(enable) == 0 {
		return errNothingToPass
	}
	if err := writable(own); err != nil {
		return err
	}
	if err := writable(filepath.Join(own, "cgroup.subtree_control")); err != nil {
		return err
	}
	pids, err := cgroupPids(own)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if !startedByUs(pid) {
			return fmt.Errorf("%s is delegated, but process %d, which airlock did not start, lives in it as well", own, pid)
		}
	}
	self, err := selfStamp()
	if err != nil {
		return err
	}
	leaf := filepath.Join(own, self.leafName())
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, leaveLeaf(leaf))
		}
	}()
	for _, pid := range pids {
		err := writeControl(filepath.Join(leaf, "cgroup.procs"), strconv.Itoa(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended meanwhile
			return err
		}
	}
	return writeControl(filepath.Join(own, "cgroup.subtree_control"), "+"+strings.Join(enable, " +"))
}

// leaveLeaf undoes moveToLeaf for the calling process: the cgroup above passes nothing on any more, the
// process is in it again, and the leaf is removed unless another process is still there. No cgroup of a
// run may stand.
func leaveLeaf(leaf string) error {
	own := filepath.Dir(leaf)
	enabled, err := readControllers(filepath.Join(own, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	if len(enabled) > 0 {
		if err := writeControl(filepath.Join(own, "cgroup.subtree_control"), "-"+strings.Join(enabled, " -")); err != nil {
			return err
		}
	}
	if err := writeControl(filepath.Join(own, "cgroup.procs"), strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	if err := unix.Rmdir(leaf); err != nil && err != unix.EBUSY {
		return &os.PathError{Op: "rmdir", Path: leaf, Err: err}
	}
	return nil
}

// leaveOwnLeaf is leaveLeaf if the calling process lives in the leaf of the server with this prefix and no
// cgroup of a run of that server stands; otherwise it does nothing.
func leaveOwnLeaf(prefix string) error {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for _, m := range parseMemberships(string(self)) {
		if m.version() != 2 || filepath.Base(m.path) != prefix+leafSuffix {
			continue
		}
		leaf, _, err := m.directory(parseCgroupMounts(string(mountinfo)))
		if err != nil {
			return err
		}
		for _, dir := range childCgroups(filepath.Dir(leaf)) {
			if strings.HasPrefix(filepath.Base(dir), prefix) && dir != leaf {
				return nil // another backend of this process has it, and will be closed later
			}
		}
		return leaveLeaf(leaf)
	}
	return nil
}

// startedByUs is true for this process and its descendants, as far as their parents still live.
func startedByUs(pid int) bool {
	for range 64 {
		if pid == os.Getpid() {
			return true
		}
		if pid <= 1 {
			return false // 0 is a process outside of our PID namespace
		}
		st, err := readStat(pid)
		if err != nil {
			return errors.Is(err, os.ErrNotExist) // it has ended meanwhile
		}
		pid = st.parent
	}
	return false
}

func readControllers(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	return strings.Fields(string(b)), err
}

// both gives the elements of a that are in b too.
func both(a, b []string) []string {
	var out []string
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// writable asks the kernel, with the effective ids, whether path can be written; a read-only mount counts.
func writable(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write to", Path: path, Err: err}
	}
	return nil
}
