package envs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A step can leave directories of any mode, and deeper than a path can name; they go with it.
func TestRemovingWhatAStepLeft(t *testing.T) {
	s, w := emptyStore(t)
	cmd := exec.Command("bash", "-ec", "mkdir -p shut/in; chmod 0 shut/in shut; d="+strings.Repeat("d", 200)+"; for i in $(seq 60); do mkdir $d; cd -P $d; done; mkdir -p shut/in; : > shut/in/x; chmod 0 shut/in shut; chmod 0 .")
	cmd.Dir = w.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.close()
	if left, err := os.ReadDir(s.path("work")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// swappedSteps plays an installer whose step has put a link in the place of the directory that it fetches to.
type swappedSteps struct {
	Installer
	elsewhere string
}

func (s swappedSteps) Run(ctx context.Context, step Step) (Outcome, error) {
	out, err := s.Installer.Run(ctx, step)
	if step.Name != "fetch" || err != nil {
		return out, err
	}
	build := step.Binds[len(step.Binds)-1].Source
	return out, errors.Join(os.RemoveAll(filepath.Join(build, "wheels")), os.Symlink(s.elsewhere, filepath.Join(build, "wheels")))
}

// Where a step left a link in place of a directory, no file of the host's is taken for what it fetched, though it had the
// name for it: it would be moved away.
func TestFetchedThroughALink(t *testing.T) {
	config := DefaultPackages()
	config.R.Allow = []string{"low"}
	elsewhere := t.TempDir()
	backup := filepath.Join(elsewhere, "low_1.0.tar.gz")
	if err := os.WriteFile(backup, []byte("low_1.0.tar.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := beginWithR(t, t.TempDir(), &fakeR{names: []string{"low"}}, config)
	c.installer = swappedSteps{c.installer, elsewhere}
	if p, err := planRPackages(c, false, "low"); err == nil {
		t.Errorf("it was taken: %+v", p.Set)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the host's file: %v", err)
	}
}
