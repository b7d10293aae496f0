package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobodysUID is of nobody in particular.
const nobodysUID = 54321

// ordinary is an ordinary user, in a directory of that user's.
type ordinary struct {
	t       *testing.T
	base    string // root's
	home    string // the user's
	program string
}

// asOrdinary makes one. Only root can.
func asOrdinary(t *testing.T) ordinary {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	base := t.TempDir()
	u := ordinary{t, base, filepath.Join(base, "home"), filepath.Join(base, "airlock")}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755), // made for root alone
		os.WriteFile(u.program, program, 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	u.mkdir(u.home, nobodysUID, 0o700)
	return u
}

func (u ordinary) mkdir(dir string, owner int, mode os.FileMode) {
	u.t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, mode), os.Lchown(dir, owner, owner)); err != nil {
		u.t.Fatal(err)
	}
}

// airlock runs it as the user, who sees all that it says, and wants the exit status.
func (u ordinary) airlock(status int, args ...string) string {
	u.t.Helper()
	cmd := exec.Command(u.program, args...)
	cmd.Dir, cmd.Env = u.base, []string{"HOME=" + u.home, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodysUID, Gid: nobodysUID}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		u.t.Errorf("airlock %q: exit status %d, want %d\n%s", args, got, status, out)
	}
	return string(out)
}

// Where root has run in a workspace too, what root's airlock keeps beside it is named, and no error.
func TestCleanLeavesWhatAnotherKeeps(t *testing.T) {
	u := asOrdinary(t)
	ws := filepath.Join(u.base, "ws")
	u.mkdir(ws, nobodysUID, 0o755)
	u.airlock(0, "log", "--workspace", ws)
	known, err := filepath.Glob(filepath.Join(u.home, ".local/state/airlock/workspaces/*"))
	if err != nil || len(known) != 1 {
		t.Fatal(known, err)
	}
	beside := filepath.Join(u.base, ".airlock-"+filepath.Base(known[0]))
	for _, mode := range []os.FileMode{0o700, 0o755} {
		u.mkdir(beside, 0, mode)
		want := beside + " is root's, who alone can clean it, " + ws + "\nThere is nothing to remove.\n"
		if out := u.airlock(0, "clean", "--workspace", ws); !strings.HasSuffix(out, want) {
			t.Errorf("%v: %s", mode, out)
		}
	}
}

// A state directory that can't be entered is said to be so, once and by every command, with the mend.
func TestClosedStateDirectory(t *testing.T) {
	u := asOrdinary(t)
	ws := filepath.Join(u.base, "ws")
	u.mkdir(ws, nobodysUID, 0o755)
	state := filepath.Join(u.home, ".local/state/airlock")
	const hint = "make it yours (chown, chmod 700), or set XDG_STATE_HOME"
	want := "airlock: the state directory " + state + " can't be entered: permission denied\nhint: " + hint + "\n"
	for _, owner := range []int{nobodysUID, 0} {
		u.mkdir(filepath.Dir(state), nobodysUID, 0o700)
		u.mkdir(state, owner, map[int]os.FileMode{nobodysUID: 0, 0: 0o700}[owner])
		for _, c := range []struct {
			status int
			args   []string
		}{
			{125, []string{"run", "--workspace", ws, "true"}},
			{1, []string{"log", "--workspace", ws}},
			{1, []string{"ps"}},
			{1, []string{"stop", "7f3a01c2"}},
			{1, []string{"clean", "--all"}},
			{1, []string{"envs"}},
			{1, []string{"requests"}},
		} {
			if out := u.airlock(c.status, c.args...); out != want {
				t.Errorf("%q: %s, want %s", c.args, out, want)
			}
		}
		out := u.airlock(1, "doctor")
		for _, want := range []string{
			"FAIL  state directory: " + state + " can't be entered: permission denied\n",
			"      mend: " + hint + "\n",
			"No run is possible: the state directory ",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("doctor: %s, want %q", out, want)
			}
		}
	}
}

// A run whose changes could not land in a workspace of another user's is refused before it begins; one that changes
// nothing isn't, and neither is a look at the history.
func TestWorkspaceOfAnotherUser(t *testing.T) {
	u := asOrdinary(t)
	ws := filepath.Join(u.base, "ws")
	u.mkdir(ws, 0, 0o755)
	out := u.airlock(125, "run", "--workspace", ws, "echo began; echo x > x")
	if !strings.Contains(out, "is root's, and you may not write in it") || !strings.Contains(out, "\nhint: ") || strings.Contains(out, "began") {
		t.Errorf("run: %s", out)
	}
	u.airlock(0, "log", "--workspace", ws)
	if err := sandboxHere(); err != nil {
		t.Skip(err)
	}
	config := filepath.Join(u.base, "readonly.toml")
	if err := os.WriteFile(config, []byte("[workspace]\nmode = \"readonly\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := u.airlock(0, "run", "--workspace", ws, "--config", config, "echo began"); !strings.Contains(out, "began\n") {
		t.Errorf("readonly: %s", out)
	}
	// A right that a mode of the owner's gives to others is enough, and so is ownership without it.
	u.mkdir(ws, 0, 0o777)
	u.airlock(0, "run", "--workspace", ws, "echo x > x")
	own := filepath.Join(u.base, "own")
	u.mkdir(own, nobodysUID, 0o555)
	u.airlock(0, "run", "--workspace", own, "chmod u+w .; echo x > x; chmod u-w .")
	for _, dir := range []string{ws, own} {
		if _, err := os.Stat(filepath.Join(dir, "x")); err != nil {
			t.Error(err)
		}
	}
}
