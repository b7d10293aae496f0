package sandboxtest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"airlock/sandbox"
)

// stage is what the host has for an attacker, and where. It is handed to each attempt in a file.
type stage struct {
	Inside bool   // in a run
	Binary string // this program
	File   string // this value

	// Mark is in everything that a run must not get to see, and in what nobody may get to change.
	Mark string

	Secret    string // a file below the home directory
	Other     string // a file of another workspace
	Tmp, Shm  string // files in the host's /tmp and /dev/shm
	Workspace string // shown through an overlay, with the file "own" in it
	Shown     string // a directory that is shown as it is, read-only; see fillShown
	Writable  string // one below Shown that may be written
	Alias     string // the second place where Shown is shown

	Server  int // the process that started the run
	Witness int // another one of the same user, with Mark in its environment

	Listeners map[string]address // by what they pass for
	SharedKey int                // of a System V segment
	Queue     string             // a POSIX message queue
}

type address struct{ Network, Address string }

// setStage puts everything up, and takes it down at the end of the test.
func setStage(t *testing.T) *stage {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		Binary: exe, Mark: "airlock-secret-" + rand.Text(), Server: os.Getpid(),
		Listeners: make(map[string]address),
	}
	s.File = filepath.Join(realDirIn(t), "stage") // readable for whomever a set-ID program runs as
	s.Secret = filepath.Join(dirIn(t, home), "id_secret")
	s.Other = filepath.Join(dirIn(t, ""), "other")
	s.Tmp = filepath.Join(dirIn(t, "/tmp"), "file")
	s.Shm = filepath.Join(dirIn(t, "/dev/shm"), "file")
	for _, name := range []string{s.Secret, s.Other, s.Tmp, s.Shm} {
		write(t, name, s.Mark, 0o644)
	}
	s.Workspace = realDirIn(t)
	write(t, filepath.Join(s.Workspace, "own"), "own", 0o644)
	link(t, s.Secret, filepath.Join(s.Workspace, "link-to-secret"))
	link(t, filepath.Dir(s.Secret), filepath.Join(s.Workspace, "link-to-home"))
	s.fillShown(t)
	s.listen(t)
	s.shareMemory(t)
	s.startWitness(t)
	s.leakInto(t)
	s.writeFile(t, s.File)
	return s
}

// giveAway makes the workspace and what is shown the run's, if that is another user: so that no mode holds what a mount has to.
// That user can't get to where go test puts a program either.
func (s *stage) giveAway(t *testing.T, o Options) {
	t.Helper()
	if o.UID == 0 {
		return
	}
	program, err := os.ReadFile(s.Binary)
	if err != nil {
		t.Fatal(err)
	}
	s.Binary = filepath.Join(realDirIn(t), "program")
	if err := os.WriteFile(s.Binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{s.Workspace, s.Shown} {
		err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
			if base := filepath.Base(name); err == nil && base != "setid" && base != "private" {
				err = os.Lchown(name, o.UID, o.GID)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// fillShown makes what the run sees of the host as it is:
//
//	file         readable
//	hidden       masked in the run
//	hiddendir/   likewise
//	private      of mode 0, to be opened by whoever holds CAP_DAC_OVERRIDE
//	setid        this program, with the set-user-ID bit, of another owner if root makes it
//	null         a device node, if root makes it
//	socket       a listener
//	writable/    may be written in the run
func (s *stage) fillShown(t *testing.T) {
	t.Helper()
	s.Shown = realDirIn(t)
	s.Alias = "/opt-alias"
	s.Writable = filepath.Join(s.Shown, "writable")
	for _, d := range []string{"writable", "hiddendir"} {
		if err := os.Mkdir(filepath.Join(s.Shown, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "hidden", "hiddendir/file"} {
		write(t, filepath.Join(s.Shown, name), s.Mark, 0o644)
	}
	setid := filepath.Join(s.Shown, "setid")
	program, err := os.ReadFile(s.Binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(setid, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := unix.Chown(setid, strangerID, strangerID); err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(setid, 0o6755); err != nil { // after the chown, which takes the bits away
		t.Fatal(err)
	}
	private := filepath.Join(s.Shown, "private")
	write(t, private, s.Mark, 0o600)
	if err := unix.Chown(private, strangerID, strangerID); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(filepath.Join(s.Shown, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
}

// strangerID is a user and a group that nobody is.
const strangerID = 45678

// listen puts up sockets under names that programs of a desktop use, where this user may make them.
func (s *stage) listen(t *testing.T) {
	t.Helper()
	run := "/run"
	if unix.Access(run, unix.W_OK) != nil {
		run = ""
	}
	run = dirIn(t, run)
	x11 := fmt.Sprintf("%s/X%d", dirOfX11(t), os.Getpid())
	for name, a := range map[string]address{
		"docker.sock":       {"unix", filepath.Join(run, "docker.sock")},
		"D-Bus":             {"unix", filepath.Join(run, "bus")},
		"an agent at home":  {"unix", filepath.Join(filepath.Dir(s.Secret), "agent")},
		"X11":               {"unix", x11},
		"X11, abstract":     {"unix", "@" + x11},
		"D-Bus, abstract":   {"unix", "@/tmp/dbus-" + s.Mark},
		"a port":            {"tcp", "127.0.0.1:0"},
		"a port of IPv6":    {"tcp", "[::1]:0"},
		"shown":             {"unix", filepath.Join(s.Shown, "socket")},
		"shown and aliased": {"unix", filepath.Join(s.Shown, "aliased")},
		"in the workspace":  {"unix", filepath.Join(s.Workspace, "socket")},
	} {
		l, err := net.Listen(a.Network, a.Address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		s.Listeners[name] = address{a.Network, l.Addr().String()}
	}
}

// dirOfX11 is where X servers have their sockets, or a directory beside it where this user may not go there.
func dirOfX11(t *testing.T) string {
	t.Helper()
	const dir = "/tmp/.X11-unix"
	if err := os.Mkdir(dir, 0o700); err == nil {
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) }) // unless there is an X server by now
	}
	if unix.Access(dir, unix.W_OK) != nil {
		return dirIn(t, "/tmp")
	}
	return dir
}

// shareMemory makes what the namespace of System V and POSIX IPC keeps apart.
func (s *stage) shareMemory(t *testing.T) {
	t.Helper()
	s.SharedKey = os.Getpid()<<8 | 0x5a
	id, err := unix.SysvShmGet(s.SharedKey, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	s.Queue = s.Mark
	name, err := unix.BytePtrFromString(s.Queue)
	if err != nil {
		t.Fatal(err)
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	unix.Close(int(fd))
	t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) })
}

// startWitness starts a process of the host's that has the secret in its environment.
func (s *stage) startWitness(t *testing.T) {
	t.Helper()
	cmd := exec.Command(s.Binary, role, "wait", s.File)
	cmd.Env = append(os.Environ(), "SANDBOXTEST_WITNESS="+s.Mark)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s.Witness = cmd.Process.Pid
}

// leakInto gives the server what everything that it starts inherits: a variable, and a descriptor.
func (s *stage) leakInto(t *testing.T) {
	t.Helper()
	t.Setenv("SANDBOXTEST_SECRET", s.Mark)
	fd, err := unix.Open(s.Other, unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

// spec describes the run that makes the attempts.
func (s *stage) spec(t *testing.T, o Options) sandbox.Spec {
	t.Helper()
	uid, gid := os.Geteuid(), os.Getegid()
	if o.UID != 0 {
		uid, gid = o.UID, o.GID
	}
	system, err := sandbox.HostSystem(os.Environ(), uid, gid)
	if err != nil {
		t.Fatal(err)
	}
	layer := realDirIn(t)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(layer, "work", "work"), 0o700) }) // 0 until then
	for _, name := range []string{"upper", "work"} {
		dir := filepath.Join(layer, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	inside := *s
	inside.Inside, inside.Binary, inside.File = true, "/probe", "/stage"
	content, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Spec{
		ID:   "sandboxtest",
		Argv: []string{"/probe", role, "all", "/stage"},
		Env:  []string{"PATH=/usr/bin:/bin", "HOME=" + system.Account.Home},
		Dir:  s.Workspace, Home: system.Account.Home,
		UID: uid, GID: gid,
		Mounts: append(
			system.Mounts,
			sandbox.Mount{Kind: sandbox.MountBind, Source: s.Binary, Target: "/probe"},
			sandbox.Mount{Kind: sandbox.MountFile, Target: "/stage", Content: content},
			sandbox.Mount{
				Kind: sandbox.MountOverlay, Source: s.Workspace, Target: s.Workspace,
				Upper: filepath.Join(layer, "upper"), Work: filepath.Join(layer, "work"),
			},
			sandbox.Mount{Kind: sandbox.MountBind, Source: s.Shown, Target: s.Shown},
			sandbox.Mount{Kind: sandbox.MountBind, Source: s.Shown, Target: s.Alias},
			sandbox.Mount{Kind: sandbox.MountBind, Source: s.Writable, Target: s.Writable, Writable: true},
			sandbox.Mount{Kind: sandbox.MountMask, Target: filepath.Join(s.Shown, "hidden")},
			sandbox.Mount{Kind: sandbox.MountMask, Target: filepath.Join(s.Shown, "hiddendir")},
			sandbox.Mount{Kind: sandbox.MountMask, Target: filepath.Join(s.Alias, "hidden")},
			sandbox.Mount{Kind: sandbox.MountMask, Target: filepath.Join(s.Alias, "hiddendir")},
		),
		// A run of root's needs a limit on its processes; Memory and Disk are as in a real run.
		Limits:  sandbox.Limits{Processes: 256, Memory: 2 << 30, Disk: 1 << 30},
		Network: sandbox.NetworkNone,
	}
}

func (s *stage) writeFile(t *testing.T, name string) {
	t.Helper()
	content, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, string(content), 0o644)
}

func readStage(file string) (*stage, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := new(stage)
	return s, json.Unmarshal(content, s)
}

// dirIn makes a directory in dir, or where temporary files go.
func dirIn(t *testing.T, dir string) string {
	t.Helper()
	d, err := os.MkdirTemp(dir, ".sandboxtest-"+time.Now().Format("150405")+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What overlayfs makes in its work directory nobody but root may look into, and remove.
		_ = filepath.WalkDir(d, func(name string, e fs.DirEntry, err error) error {
			if e != nil && e.IsDir() {
				_ = os.Chmod(name, 0o700)
			}
			return nil
		})
		if err := os.RemoveAll(d); err != nil {
			t.Error(err)
		}
	})
	return d
}

// realDirIn is dirIn with every link on its path followed, as a Mount wants it.
func realDirIn(t *testing.T) string {
	t.Helper()
	d := dirIn(t, "")
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	real, _, err := sandbox.FollowLinks(d)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, text, name string) {
	t.Helper()
	if err := os.Symlink(text, name); err != nil {
		t.Fatal(err)
	}
}
