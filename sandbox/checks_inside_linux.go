package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What is tried in namespaces like those of a run.
const (
	insideMounts  = "mounts"
	insideProc    = "/proc"
	insideOverlay = "overlay file system"
	insideRights  = "rights"
)

// outsideProcesses is what is tried in no new namespace (nproc_linux.go).
const outsideProcesses = "processes"

// checkFD is the descriptor of the socket to the process that wants to know.
const checkFD = 3

// checkTimeout bounds each attempt, if ctx has a later deadline or none.
const checkTimeout = 10 * time.Second

// checkOrder is what the process in the namespaces is told.
type checkOrder struct {
	Dir       string `json:"dir,omitempty"`       // has empty directories lower, upper and work
	Processes bool   `json:"processes,omitempty"` // try outsideProcesses, and nothing else
}

// finding is what became of one thing that was tried; Text is "" if it worked.
type finding struct {
	Errno int    `json:"errno"`
	Text  string `json:"text"`
}

// inNamespaces executes this program again in new namespaces, with the ids and capabilities that init has, and
// returns what it found; without flags, as it is. Without an order it tries nothing but that. The error says why it
// could not be started.
func inNamespaces(ctx context.Context, flags uintptr, order *checkOrder) (map[string]finding, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "findings"), os.NewFile(uintptr(pair[1]), "findings")
	defer ours.Close()

	cmd := exec.CommandContext(ctx, ownBinary())
	cmd.Args = []string{checkName}
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{theirs}
	if flags != 0 {
		cmd.SysProcAttr = initAttr(Spec{UID: os.Geteuid(), GID: os.Getegid()})
		cmd.SysProcAttr.Cloneflags = flags
	}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		// What os/exec says of a failed clone names the program, which is not what is wrong.
		if errno := errnoOf(err); errno != 0 {
			return nil, errno
		}
		return nil, err
	}
	found := make(map[string]finding)
	err = json.NewEncoder(ours).Encode(order)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(ours, 64<<10)).Decode(&found)
	}
	ours.Close()
	return found, errors.Join(err, cmd.Wait())
}

// checkMain is the program in the namespaces; it does not return. Whatever it mounts is gone with it.
func checkMain() {
	runtime.LockOSThread() // for dropRights
	if err := closeInherited(checkFD); err != nil {
		os.Exit(1)
	}
	unix.CloseOnExec(checkFD)
	socket := os.NewFile(checkFD, "findings")
	var order *checkOrder
	if err := json.NewDecoder(io.LimitReader(socket, 64<<10)).Decode(&order); err != nil {
		os.Exit(1)
	}
	found := make(map[string]finding)
	switch {
	case order == nil:
	case order.Processes:
		found[outsideProcesses] = newFinding(forkBeyondRlimit())
	default:
		for _, try := range []struct {
			name string
			do   func() error
		}{
			{insideMounts, tryMounts},
			{insideProc, tryProc},
			{insideOverlay, func() error { return tryOverlay(order.Dir) }},
			{insideRights, tryRights}, // last: it takes the others' rights too
		} {
			found[try.name] = newFinding(try.do())
		}
	}
	if err := json.NewEncoder(socket).Encode(found); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func newFinding(err error) finding {
	if err == nil {
		return finding{}
	}
	text := err.Error()
	var setup *SetupError
	if errors.As(err, &setup) {
		text = fmt.Sprintf("%s %s: %v", setup.Op, setup.Path, setup.Err)
	}
	return finding{Errno: int(errnoOf(err)), Text: text}
}

func tryMounts() error {
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return setupError(opPrivateMounts, "/", err)
	}
	root, err := newMount("tmpfs", unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return err
	}
	defer root.Close()
	usr, err := openPath("/usr")
	if err != nil {
		return err
	}
	defer usr.Close()
	clone, err := cloneMount(usr, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID)
	if err != nil {
		return err
	}
	return clone.Close()
}

func tryProc() error {
	proc, err := newMount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return err
	}
	return proc.Close()
}

func tryOverlay(dir string) error {
	overlay, err := newMount(
		"overlay", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV,
		option{"userxattr", ""},
		option{"lowerdir", filepath.Join(dir, "lower")},
		option{"upperdir", filepath.Join(dir, "upper")},
		option{"workdir", filepath.Join(dir, "work")},
	)
	if err != nil {
		return err
	}
	return overlay.Close()
}

// tryRights drops the rights of this thread and asks the kernel for one that only they could give.
func tryRights() error {
	if err := dropRights(); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWUTS); !errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("after the rights were dropped, unshare says %v instead of %w", err, unix.EPERM)
	}
	return nil
}
