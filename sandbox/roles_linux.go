package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The names under which the binary executes itself: the whole argv, so that ps shows no paths.
const (
	initName    = "airlock-init"
	janitorName = "airlock-janitor"
	starterName = "airlock-starter"
	checkName   = "airlock-check"
)

// A backend that isolates executes its own binary again, as the init process of a run, as the process that starts
// those, as the one that clears up after a server that was killed, and to try what a host allows. Such a process does its work here
// and never gets to main, nor to the initialisation of the packages that come after this one: a server links
// some whose tables take longer to set up than a run takes.
func init() {
	if len(os.Args) == 0 {
		return
	}
	name := os.Args[0]
	if isWrappedInit(os.Args) {
		name = initName
	}
	switch name {
	case initName:
		initMain()
	case janitorName:
		janitorMain()
	case starterName:
		starterMain()
	case checkName:
		checkMain()
	default:
		return
	}
	os.Exit(0)
}

// The descriptors of a process that was started for a role: its end of the socket to the server, and what it was
// executed from (see startSealed).
const (
	roleLifeline = 3
	roleBinary   = 4
)

// startRole starts a process beside the server, for one of these roles, from exe, an open executable file of this
// program: the janitor's is the sealed copy, the starter's the host's file. It is in a process session of its own, so that no
// terminal's signal ends it with the server, and has inherited nothing but one end of a socket of packets. The other end is
// held by the server alone: its end of file is the server's death, however that came.
func startRole(exe *os.File, name string) (_ *exec.Cmd, conn *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "lifeline")
	defer theirs.Close()
	conn = os.NewFile(uintptr(pair[0]), "lifeline")
	cmd := &exec.Cmd{
		Path:        fmt.Sprintf("/proc/self/fd/%d", roleBinary),
		Args:        []string{name},
		Env:         initEnv,
		Dir:         "/", // a working directory would keep the workspace's file system busy
		ExtraFiles:  []*os.File{theirs, exe},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, nil, err
	}
	return cmd, conn, nil
}

// waitRole waits for a process that was dismissed, and kills one that hangs.
func waitRole(cmd *exec.Cmd) error {
	late := time.AfterFunc(removeTimeout, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	return cmd.Wait()
}

// enterRole is what the process does first.
func enterRole(name string) error {
	nameSelf(name)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	unix.CloseOnExec(roleLifeline)
	return closeInherited(roleLifeline)
}

// nameSelf is for whoever looks at the host's processes: exec named this one after a descriptor.
func nameSelf(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }
