package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// removeCgroup removes the cgroup at path with those below it and kills what lives in them, until the
// deadline. A cgroup that is gone is no error.
func removeCgroup(path string, deadline time.Time) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Rmdir(path)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY || time.Now().After(deadline) {
			return &os.PathError{Op: "rmdir", Path: path, Err: err}
		}
		killCgroup(path)
		for _, child := range childCgroups(path) {
			_ = removeCgroup(child, deadline) // if it fails, so does the next rmdir here
		}
		time.Sleep(pause)
	}
}

// removeServerCgroups removes every cgroup in base that the server with this prefix made, but not the
// one that it lives in itself.
func removeServerCgroups(base, prefix string, deadline time.Time) error {
	var errs []error
	for _, dir := range childCgroups(base) {
		name := filepath.Base(dir)
		if strings.HasPrefix(name, prefix) && !isServerLeaf(name) {
			errs = append(errs, removeCgroup(dir, deadline))
		}
	}
	return errors.Join(errs...)
}

// cleanStaleCgroups removes what servers that are no more have left, because they and their janitor were
// both killed. It never touches what a living server made, nor what may be of one that cannot be seen
// from here (another PID namespace). What belongs to another user stays, without an error.
func cleanStaleCgroups() error {
	namespace, err := pidNamespace()
	if err != nil {
		return err
	}
	hs, _ := findHierarchies([]string{controllerPids, controllerMemory, controllerCPU})
	deadline := time.Now().Add(removeTimeout)
	var errs []error
	for _, h := range hs {
		for _, dir := range childCgroups(h.base) {
			s, ok := parseStamp(filepath.Base(dir))
			if !ok || !s.dead(namespace) {
				continue
			}
			if err := removeCgroup(dir, deadline); err != nil && !errors.Is(err, fs.ErrPermission) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// childCgroups are the directories below a cgroup; none if it cannot be read.
func childCgroups(path string) []string {
	entries, _ := os.ReadDir(path)
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, filepath.Join(path, e.Name()))
		}
	}
	return out
}

// killCgroup sends SIGKILL to all that live in the cgroup. It returns before they are gone, and forks
// that went on meanwhile may have escaped a version 1 cgroup: whoever wants it empty calls it again.
func killCgroup(path string) {
	// Version 2 since Linux 5.14 does it at once, and no fork escapes.
	if err := writeControl(filepath.Join(path, "cgroup.kill"), "1"); err == nil {
		return
	}
	killMembers(path)
}

// killMembers kills by descriptors: a PID that was read from the list may have been reused when the
// signal is sent, by a process that is not ours. So each is opened first, and gets the signal only if it
// is in the list after that.
func killMembers(path string) {
	pids, err := cgroupPids(path)
	if err != nil {
		return
	}
	open := make(map[int]int, len(pids))
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			open[pid] = fd
		}
	}
	still, _ := cgroupPids(path)
	for _, pid := range still {
		if fd, ok := open[pid]; ok {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // ESRCH: gone, as wanted
		}
	}
	for _, fd := range open {
		unix.Close(fd)
	}
}

// cgroupPids lists the processes of a cgroup, without those of cgroups below it.
func cgroupPids(path string) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, f := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
