package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"airlock/internal/procfile"
)

// The controllers that hold limits of a run, and the names of these limits.
const (
	controllerPids   = "pids"
	controllerMemory = "memory"
	controllerCPU    = "cpu"
)

var limitOfController = map[string]string{
	controllerPids:   "processes",
	controllerMemory: "memory",
	controllerCPU:    "cpu",
}

// initHeadroom is what is added to Limits.Processes for init's own threads, since init lives in the
// cgroup that it is the first process of. A run may use what init leaves of it.
const initHeadroom = 14

// removeTimeout bounds how long a cgroup is waited for until its killed processes are gone.
const removeTimeout = 2 * time.Second

// cgroup is where one run lives: one directory on version 2, one in each hierarchy on version 1.
//
// Its life: newCgroup, with the limits already set; add, before the process does anything of the run; begin, when there is
// a run; reached, when it has ended; remove.
type cgroup struct {
	dirs  []cgroupDir
	watch *oomWatch // from begin on, on version 1, where memory is limited; else nil
}

// cgroupDir is one directory of a cgroup, with the controllers that hold limits in it.
type cgroupDir struct {
	path        string
	version     int
	controllers []string
}

// newCgroup makes a cgroup for the run named id and sets the limits that a cgroup can hold here. It
// returns nil, nil if there is none to be had, or if no limit is to be held; [cgroupHeld] says which
// limits that would be. The error is a *SetupError.
func newCgroup(id string, l Limits) (*cgroup, error) {
	self, err := selfStamp()
	if err != nil {
		return nil, &SetupError{Op: "create cgroup", Err: err}
	}
	wanted := wantedControllers(l)
	if len(wanted) == 0 {
		return nil, nil
	}
	hs, _ := findHierarchies(wanted)
	return makeCgroup(hs, self.cgroupName(id), l)
}

// wantedControllers are those that hold a limit which is set.
func wantedControllers(l Limits) []string {
	var wanted []string
	if l.Processes > 0 {
		wanted = append(wanted, controllerPids)
	}
	if l.Memory > 0 {
		wanted = append(wanted, controllerMemory)
	}
	if l.CPU > 0 {
		wanted = append(wanted, controllerCPU)
	}
	return wanted
}

// makeCgroup makes the directory name in each hierarchy; either all of them stand, with their limits,
// or none.
func makeCgroup(hs []hierarchy, name string, l Limits) (_ *cgroup, err error) {
	if len(hs) == 0 {
		return nil, nil
	}
	c := &cgroup{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.remove())
		}
	}()
	for _, h := range hs {
		d := cgroupDir{filepath.Join(h.base, name), h.version, h.controllers}
		if err := os.Mkdir(d.path, 0o755); err != nil {
			return nil, cgroupError("create cgroup", d.path, err)
		}
		c.dirs = append(c.dirs, d)
		if err := d.limit(l); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// begin looks after what the kernel does not on its own, from now on. A nil cgroup has nothing to look after.
func (c *cgroup) begin(l Limits) {
	if c == nil || l.Memory <= 0 {
		return
	}
	for _, d := range c.dirs {
		if d.version == 1 && slices.Contains(d.controllers, controllerMemory) {
			c.watch = watchOOM(d)
		}
	}
}

// limit sets the limits that this directory holds.
func (d cgroupDir) limit(l Limits) error {
	var settings []setting
	for _, controller := range d.controllers {
		if d.version == 2 {
			settings = append(settings, settingsV2(controller, l)...)
		} else {
			settings = append(settings, settingsV1(controller, l)...)
		}
	}
	for _, s := range settings {
		err := writeControl(filepath.Join(d.path, s.file), s.value)
		if err != nil && !(s.optional && errors.Is(err, os.ErrNotExist)) {
			return cgroupError("set limit", filepath.Join(d.path, s.file), err)
		}
	}
	return nil
}

// setting is a value for one control file; an optional one may be missing in the kernel's configuration.
type setting struct {
	file, value string
	optional    bool
}

// add moves a process with all its threads into the cgroup. What it forks from then on is born there.
func (c *cgroup) add(pid int) error {
	for _, d := range c.dirs {
		if err := writeControl(filepath.Join(d.path, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return cgroupError("move the process into its cgroup", d.path, err)
		}
	}
	return nil
}

// reached names the limit that the kernel counted as reached, the gravest first: "memory" if it killed
// a process of the run for it, "processes" if it refused a fork, else "". ended is true for memory: the
// run is over with it, on version 2 by the kernel, on version 1 by [oomWatch] at the latest when the
// cgroup is removed. Nothing is concluded from how a program ended or from what it printed.
func (c *cgroup) reached() (limit string, ended bool) {
	forks := false
	for _, d := range c.dirs {
		for _, controller := range d.controllers {
			switch {
			case controller == controllerMemory && d.oomKills() > 0:
				return limitOfController[controllerMemory], true
			case controller == controllerPids && eventCount(filepath.Join(d.path, "pids.events"), "max") > 0:
				forks = true
			}
		}
	}
	if forks {
		return limitOfController[controllerPids], false
	}
	return "", false
}

// holds is true if the cgroup holds the limit with this name; a nil cgroup holds none.
func (c *cgroup) holds(limit string) bool {
	if c == nil {
		return false
	}
	for _, d := range c.dirs {
		for _, controller := range d.controllers {
			if limitOfController[controller] == limit {
				return true
			}
		}
	}
	return false
}

// oomKills is how many processes of the cgroup the kernel has killed for its memory limit.
func (d cgroupDir) oomKills() int {
	file := "memory.events"
	if d.version == 1 {
		file = "memory.oom_control"
	}
	return eventCount(filepath.Join(d.path, file), "oom_kill")
}

// remove kills what is left in the cgroup, waits for it up to two seconds and removes the cgroup. It may
// be called again after an error. Without it a cgroup stays for ever.
func (c *cgroup) remove() error {
	c.watch.stop()
	c.watch = nil
	var errs []error
	deadline := time.Now().Add(removeTimeout)
	for _, d := range c.dirs {
		if err := removeCgroup(d.path, deadline); err != nil {
			errs = append(errs, cgroupError("remove cgroup", d.path, err))
		}
	}
	return errors.Join(errs...)
}

// cgroupHeld says by which mechanism each of "processes", "memory" and "cpu" would be held for a run with
// the limits l: "cgroup v1", "cgroup v2", or "" where no cgroup can. It makes a cgroup with these limits
// (and some, where l has none) and removes it again, since only that tells.
func cgroupHeld(l Limits) map[string]string {
	held := make(map[string]string)
	for _, limit := range limitOfController {
		held[limit] = ""
	}
	if l.Processes <= 0 {
		l.Processes = 256
	}
	if l.Memory <= 0 {
		l.Memory = 1 << 30
	}
	if l.CPU <= 0 {
		l.CPU = 1
	}
	c, err := newCgroup("probe", l)
	if err != nil || c == nil {
		return held
	}
	for _, d := range c.dirs {
		for _, controller := range d.controllers {
			held[limitOfController[controller]] = "cgroup v" + strconv.Itoa(d.version)
		}
	}
	if err := c.remove(); err != nil {
		return map[string]string{} // one that cannot be removed again must not be used
	}
	return held
}

// eventCount reads the number after key in a control file of lines "key number"; 0 if there is none.
func eventCount(path, key string) int {
	b, err := procfile.Read(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
			n, _ := strconv.Atoi(value)
			return n
		}
	}
	return 0
}

// writeControl writes a value to a control file in one write(2), which is how the kernel reads it. The
// file is never created: a missing one is an error.
func writeControl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// cgroupError makes a SetupError of what went wrong at path, without naming the path twice.
func cgroupError(op, path string, err error) *SetupError {
	var perr *os.PathError
	if errors.As(err, &perr) {
		path, err = perr.Path, perr.Err
	}
	hint := ""
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOSPC) {
		hint = fmt.Sprintf("a limit on the number of cgroups is reached; see cgroup.max.descendants above %s", path)
	}
	return &SetupError{Op: op, Path: path, Err: err, Hint: hint}
}
