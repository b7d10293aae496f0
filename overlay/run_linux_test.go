package overlay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests run shell scripts on real overlay mounts. The test binary starts itself in new user and
// mount namespaces, mounts the layer over the workspace there, and becomes the shell.

const asRun = "airlock-overlay-test-run"

func TestMain(m *testing.M) {
	switch os.Args[0] {
	case asRun:
		fmt.Fprintln(os.Stderr, becomeRun(os.Args[1], os.Args[2]))
		os.Exit(exitNoMount)
	case onSmall:
		small()
		os.Exit(0)
	case asServer:
		serve()
	case asKilled:
		killed()
	}
	if os.Getenv(asTool) != "" {
		tools(os.Args[1:])
		os.Exit(0)
	}
	// With the race detector a process that ends well waits for a second, so that what races may still be seen.
	// Those that the tests start have nothing that does.
	if os.Getenv("GORACE") == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0")
	}
	os.Setenv("GIT_TEST_FSYNC", "false") // nobody needs these repositories after a loss of power
	os.Exit(m.Run())
}

const exitNoMount = 121

// becomeRun mounts the layers and executes the script in the first of them.
func becomeRun(encoded, script string) error {
	var layers []Layer
	if err := json.Unmarshal([]byte(encoded), &layers); err != nil {
		return err
	}
	var mounts []int
	for _, l := range layers {
		mnt, err := openLayer(l)
		if err != nil {
			return err
		}
		mounts = append(mounts, mnt)
	}
	for i, l := range layers {
		if err := unix.MoveMount(mounts[i], "", unix.AT_FDCWD, l.Lower, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("move_mount: %w", err)
		}
	}
	if err := os.Chdir(layers[0].Lower); err != nil {
		return err
	}
	return unix.Exec("/bin/sh", []string{"sh", "-euc", toolFunction + strictly(script)}, append(os.Environ(), "HOME=/nonexistent", "TOOL="+self()))
}

// openLayer makes the mount of a layer.
func openLayer(l Layer) (int, error) {
	if l.Copy != "" || l.ReadOnly {
		source := l.Copy
		if l.ReadOnly {
			source = l.Lower
		}
		mnt, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err == nil && l.ReadOnly {
			err = unix.MountSetattr(mnt, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}
		if err != nil {
			return -1, fmt.Errorf("clone %s: %w", source, err)
		}
		return mnt, nil
	}
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("fsopen: %w", err)
	}
	lower := []string{l.Lower}
	if l.Mask != "" {
		lower = []string{l.Mask, l.Lower}
	}
	for key, dirs := range map[string][]string{"lowerdir": lower, "upperdir": {l.Upper}, "workdir": {l.Work}} {
		if dirs[0] == "" {
			continue // a view
		}
		var paths []string
		for _, dir := range dirs {
			fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
			if err != nil {
				return -1, err
			}
			paths = append(paths, fmt.Sprintf("/proc/self/fd/%d", fd))
		}
		if err := unix.FsconfigSetString(fs, key, strings.Join(paths, ":")); err != nil {
			return -1, fmt.Errorf("fsconfig %s: %w", key, err)
		}
	}
	if err := unix.FsconfigSetFlag(fs, "userxattr"); err != nil {
		return -1, fmt.Errorf("fsconfig userxattr: %w", err)
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("create overlay: %w", err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("fsmount: %w", err)
	}
	return mnt, nil
}

// runCommand is a script on layers.
func runCommand(layers []Layer, script string) *exec.Cmd {
	encoded, err := json.Marshal(layers)
	must(err)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{asRun, string(encoded), script}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return cmd
}

// run runs a script on a layer, to its end.
func run(t *testing.T, l Layer, script string) {
	t.Helper()
	runOn(t, []Layer{l}, script)
}

// runOn runs a script on layers, to its end.
func runOn(t *testing.T, layers []Layer, script string) {
	t.Helper()
	if out := tryOn(t, layers, script); out != "" {
		missing(t, "overlay", errors.New(out))
	}
}

// tryOn is runOn, and says why the layers could not be mounted.
func tryOn(t *testing.T, layers []Layer, script string) (refused string) {
	t.Helper()
	cmd := runCommand(layers, script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC):
		missing(t, "userns", err)
	case errors.As(err, &exit) && exit.ExitCode() == exitNoMount:
		return out.String()
	case err != nil:
		t.Fatalf("script: %v\n%s", err, out.String())
	}
	return ""
}

// fixture is a workspace of one test.
type fixture struct {
	t     *testing.T
	base  string
	dir   string // the workspace
	state string
	*Workspace
	runs int
	// review says what lands runs: nothing if "", else a review. The host does what it does meanwhile
	// "before" it, or "after" the run began to wait.
	review string
}

// bases are directories on the filesystems that the tests go through.
func bases(t *testing.T) map[string]string {
	found := map[string]string{"disk": os.TempDir()}
	if unix.Access("/dev/shm", unix.W_OK) == nil {
		found["tmpfs"] = "/dev/shm"
	}
	return found
}

func newFixture(t *testing.T, base string, setup string, change ...func(*Config)) *fixture {
	t.Helper()
	f := emptyFixture(t, base)
	f.host(setup)
	f.open(change...)
	return f
}

// emptyFixture makes a workspace that is not open yet.
func emptyFixture(t *testing.T, base string) *fixture {
	t.Helper()
	tmp, err := os.MkdirTemp(base, "overlay-test-")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, base: tmp, dir: filepath.Join(tmp, "ws"), state: filepath.Join(tmp, "state")}
	t.Cleanup(func() {
		exec.Command("chmod", "-R", "u+rwx", tmp).Run()
		if err := os.RemoveAll(tmp); err != nil {
			t.Error(err)
		}
	})
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) open(change ...func(*Config)) {
	f.t.Helper()
	c := Defaults()
	for _, ch := range change {
		ch(&c)
	}
	var err error
	if f.Workspace, err = Open(f.dir, f.state, c); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := f.Close(); err != nil {
			f.t.Error(err)
		}
	})
}

func onDisk(t *testing.T, setup string, change ...func(*Config)) *fixture {
	t.Helper()
	return newFixture(t, os.TempDir(), setup, change...)
}

// host runs a script in the workspace as its owner does.
func (f *fixture) host(script string) string {
	f.t.Helper()
	cmd := exec.Command("/bin/sh", "-euc", toolFunction+strictly(script))
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "BASE="+f.base, "TOOL="+self())
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("host script: %v\n%.2000s\n%s", err, script, out)
	}
	return string(out)
}

func (f *fixture) begin() *Txn {
	f.t.Helper()
	f.runs++
	txn, err := f.Begin(context.Background(), fmt.Sprintf("r%d", f.runs))
	if err != nil {
		f.t.Fatal(err)
	}
	return txn
}

func (f *fixture) land(txn *Txn) Report {
	f.t.Helper()
	report, err := txn.Land(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	if strings.Contains(" "+f.leftovers()+" ", " "+txn.run+" ") {
		f.t.Error("the layer is still there")
	}
	return report
}

// leftovers names what is in this server's scratch.
func (f *fixture) leftovers() string {
	names, err := f.scratch.server.list("")
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// landed runs a script and lands it, with a host script in between.
func (f *fixture) landed(script, meanwhile string) Report {
	f.t.Helper()
	txn := f.begin()
	runOn(f.t, txn.Layers(), script)
	if f.review == "after" {
		parked := f.park(txn)
		if meanwhile != "" {
			f.host(meanwhile)
		}
		return f.reviewed(parked)
	}
	if meanwhile != "" {
		f.host(meanwhile)
	}
	if f.review != "" {
		return f.reviewed(f.park(txn))
	}
	return f.land(txn)
}

// strictly makes "! command" count in a script: the shell's -e does not look at a command with a "!".
func strictly(script string) string {
	return negated.ReplaceAllString(script, "$1$2 || exit 9")
}

var negated = regexp.MustCompile(`(^|[;\n]\s*)(! [^;\n]+)`)
