package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// gainProbes try to get more rights than the run was started with.
func gainProbes() []probe {
	return []probe{
		{name: "program with a set-ID bit of the system's", try: setIDOfTheSystem, held: refused(errUngained, errMissing)},
		{name: "program with a set-ID bit in what is shown", try: setIDShown, held: refused(errUngained), control: asRoot},
		{name: "program with a set-ID bit in the workspace", try: setIDMade, held: refused(errUngained, unix.EPERM), control: asRoot},
		{name: "program with capabilities", try: fileCapabilities, held: refused(errUngained, unix.EPERM), control: asRoot},
		{name: "setuid", try: func(*stage) error { return unix.Setuid(strangerID) }, held: refused(unix.EPERM, unix.EINVAL), control: asRoot},
		{name: "setgroups", try: func(*stage) error { return unix.Setgroups([]int{strangerID}) }, held: refused(unix.EPERM), control: asRoot},
		{name: "capset", try: regainCapabilities, held: refused(unix.EPERM), control: apart},
		{name: "ambient capability", try: func(*stage) error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_SYS_ADMIN, 0, 0)
		}, held: refused(unix.EPERM), control: apart},
		{name: "securebits", try: func(*stage) error { return unix.Prctl(unix.PR_SET_SECUREBITS, 0, 0, 0, 0) }, held: refused(unix.EPERM), control: apart},
		{
			name: "no_new_privs taken back", try: func(*stage) error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) }, held: refused(unix.EINVAL),
			control: nowhere, why: "it can be taken back nowhere; that it is set shows in the programs with set-ID bits",
		},
		{name: "device node", try: makeNode(unix.S_IFCHR, unix.Mkdev(1, 3)), held: refused(unix.EPERM), control: asRoot},
		{name: "block device node", try: makeNode(unix.S_IFBLK, unix.Mkdev(7, 0)), held: refused(unix.EPERM), control: asRoot},
		{name: "whiteout", try: makeNode(unix.S_IFCHR, 0), held: refused(unix.EPERM)},
		{name: "device node in what is shown", try: func(s *stage) error { return open(inShown("null")(s), unix.O_RDWR) }, held: refused(unix.EACCES, unix.ENOENT), control: asRoot},
		{name: "disks", try: searchDevices, held: refused(errNothing)},
		{name: "file of somebody else's given away", try: func(s *stage) error {
			name := s.scratchFile("given")
			defer os.Remove(name)
			if err := write0(name); err != nil {
				return err
			}
			return unix.Chown(name, strangerID, strangerID)
		}, held: refused(unix.EPERM), control: asRoot},
		{name: "higher priority", try: func(*stage) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -10) }, held: refused(unix.EACCES), control: asRoot},
		{name: "real-time scheduling", try: realTime, held: refused(unix.EPERM), control: asRoot},
		{name: "higher hard limit", try: func(*stage) error {
			return unix.Prlimit(0, unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil)
		}, held: refused(unix.EPERM), control: asRoot, absent: refused(unix.EPERM), why: "this host's root has no CAP_SYS_RESOURCE"},
		{name: "limit on core dumps", try: lowerCoreLimit, held: refused(errUngained)},
		{name: "core dump", try: coreDump, held: refused(errUngained)},
	}
}

// whatItGot tells who this program runs as and with what: "UID CapEff".
func whatItGot(s *stage) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	var uids, caps string
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "Uid:"); ok {
			uids = strings.Fields(v)[1]
		}
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps = strings.TrimSpace(v)
		}
	}
	return fmt.Errorf("%s %s", uids, caps)
}

// gained runs a program and says whether it got another user or capability than this one.
func (s *stage) gained(program string) error {
	own := fmt.Sprint(whatItGot(s))
	got := s.process("what this program got", func(cmd *exec.Cmd) { cmd.Path = program })
	if got.Outcome == own || got.Outcome == unix.ErrnoName(unix.EACCES) {
		return errUngained
	}
	if got.Outcome == "no answer" {
		return fmt.Errorf("%s: %s", program, got.Text)
	}
	return nil
}

// setIDOfTheSystem starts a program that the system has set-user-ID root, which waits for input, and looks at whom it
// runs as. Root can gain nothing by it, so that it looks for a set-group-ID program.
func setIDOfTheSystem(s *stage) error {
	candidates := []string{"/usr/bin/su", "/bin/su"}
	field := "Uid:"
	if os.Geteuid() == 0 {
		candidates = []string{"/usr/bin/ssh-agent", "/usr/bin/wall", "/usr/bin/write", "/usr/bin/chage", "/usr/bin/expiry", "/usr/bin/crontab"}
		field = "Gid:"
	}
	for _, name := range candidates {
		var st unix.Stat_t
		if unix.Stat(name, &st) != nil || st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 && !s.Inside {
			continue
		}
		got, err := effectiveID(name, field)
		if err != nil {
			continue
		}
		if got != fmt.Sprint(os.Geteuid()) {
			return nil
		}
		return errUngained
	}
	return errMissing
}

// effectiveID starts a program and reads its effective user or group. The parent of the exec'd program sees it in
// the status, which anyone may read, before the program does anything.
func effectiveID(name, field string) (string, error) {
	cmd := exec.Command(name)
	stdin, err := cmd.StdinPipe() // never written: who asks for a password waits
	if err != nil {
		return "", err
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		return "", err
	}
	// The program may be gone at once. A zombie keeps its status, and is not waited for until it has been read.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, field); ok {
			return strings.Fields(v)[1], nil
		}
	}
	return "", fmt.Errorf("no %s in the status of %s", field, name)
}

func setIDShown(s *stage) error { return s.gained(inShown("setid")(s)) }

// setIDMade copies this program, and gives the copy a user and the bit.
func setIDMade(s *stage) error {
	name := s.scratchFile("setid")
	defer os.Remove(name)
	if err := s.copyBinary(name); err != nil {
		return err
	}
	if err := unix.Chown(name, strangerID, strangerID); err != nil {
		return err
	}
	if err := unix.Chmod(name, 0o6755); err != nil {
		return err
	}
	return s.gained(name)
}

// fileCapabilities gives a copy of this program CAP_SYS_ADMIN, and runs it as nobody, since root has that anyway.
func fileCapabilities(s *stage) error {
	name := s.scratchFile("capable")
	defer os.Remove(name)
	if err := s.copyBinary(name); err != nil {
		return err
	}
	// struct vfs_cap_data, version 2, with the effective bit: permitted CAP_SYS_ADMIN (21).
	attribute := []byte{1, 0, 0, 2, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(name, "security.capability", attribute, 0); err != nil {
		return err
	}
	var b [20]byte
	if _, err := unix.Getxattr(name, "security.capability", b[:]); err != nil {
		return err
	}
	if !s.Inside {
		return nil
	}
	return s.gained(name)
}

// scratchFile names a new file on a disk: in the workspace, or where the stage's files are.
func (s *stage) scratchFile(name string) string {
	if s.Inside {
		return inWorkspace("scratch-" + name)(s)
	}
	return s.Other + "-" + name
}

func (s *stage) copyBinary(name string) error {
	program, err := os.ReadFile(s.Binary)
	if err != nil {
		return err
	}
	return os.WriteFile(name, program, 0o755)
}

func regainCapabilities(*stage) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	return unix.Capset(&header, &all[0])
}

func makeNode(mode uint32, device uint64) func(*stage) error {
	return func(s *stage) error {
		name := s.scratchFile("node")
		defer os.Remove(name)
		return unix.Mknod(name, mode|0o600, int(device))
	}
}

// searchDevices looks for a node that leads to hardware. The control finds any disk, terminal or the kernel's log.
func searchDevices(s *stage) error {
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return err
	}
	harmless := map[string]bool{"full": true, "null": true, "random": true, "tty": true, "urandom": true, "zero": true, "ptmx": true, "console": true}
	for _, e := range entries {
		if e.Type()&os.ModeDevice != 0 && !harmless[e.Name()] {
			if s.Inside {
				return fmt.Errorf("there is /dev/%s", e.Name())
			}
			return nil
		}
	}
	return errNothing
}

func realTime(*stage) error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: 1 /* SCHED_FIFO */, Priority: 1}, 0)
}

// coreDump has a process crash with the highest limit that can be had, and asks whether a core was dumped: to a file, or,
// whatever the limit, to a program of the host's.
func coreDump(s *stage) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, &limit, nil); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(s.scratchFile("core")), "scratch-core-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := s.command("crash")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOTRACEBACK=crash")
	err = cmd.Run()
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) {
		return fmt.Errorf("a process did not crash: %w", err)
	}
	status := exit.Sys().(syscall.WaitStatus)
	switch {
	case !status.Signaled():
		return fmt.Errorf("a process did not crash: %v", exit)
	case !status.CoreDump():
		return errUngained
	}
	return nil
}

func crash(*stage) error { panic("for a core") }

// lowerCoreLimit sets the limit on core files to 0. Where core_pattern names a program, the kernel then starts it, on the
// host, for every crash; it is the value 1 that prevents that.
func lowerCoreLimit(*stage) error {
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, new(unix.Rlimit), nil); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit); err != nil {
		return err
	}
	if limit.Max != 0 {
		return errUngained
	}
	return nil
}
