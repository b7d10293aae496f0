package overlay

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// jointSet makes a workspace whose git directory is outside, and what a run does to both.
type jointSet struct{ dir string }

func (j jointSet) git() string { return filepath.Join(filepath.Dir(j.dir), "main", ".git") }

func (j jointSet) setup() {
	write := func(path, text string) {
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(text), 0o644))
	}
	git := j.git()
	write(filepath.Join(j.dir, ".git"), "gitdir: "+git+"/worktrees/ws\n")
	for _, name := range []string{"a", "b", "gone"} {
		write(filepath.Join(j.dir, name), "before\n")
	}
	write(filepath.Join(git, "HEAD"), "ref: refs/heads/main\n")
	write(filepath.Join(git, "config"), "[core]\n")
	write(filepath.Join(git, "objects", "aa", "1"), "object\n")
	write(filepath.Join(git, "packed-refs"), "0 refs/heads/main\n")
	for _, name := range []string{"ws", "old"} {
		write(filepath.Join(git, "refs", "heads", name), "before\n")
	}
	tree := filepath.Join(git, "worktrees", "ws")
	write(filepath.Join(tree, "HEAD"), "ref: refs/heads/ws\n")
	write(filepath.Join(tree, "commondir"), "../..\n")
	write(filepath.Join(tree, "gitdir"), filepath.Join(j.dir, ".git")+"\n")
	write(filepath.Join(tree, "index"), "before\n")
}

func (j jointSet) run(txn *Txn) {
	at := func(layer, path, text string) {
		path = filepath.Join(layer, path)
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte(text), 0o644))
	}
	ws, git := txn.Layer().Upper, txn.git.Layer().Upper
	at(ws, "a", "after\n")
	at(ws, "new/x", "after\n")
	must(os.MkdirAll(filepath.Join(ws, "dir"), 0o755))
	whiteout(filepath.Join(ws, "gone"))
	at(git, "objects/bb/2", "object\n")
	at(git, "refs/heads/ws", "after\n")
	at(git, "refs/heads/topic", "after\n")
	at(git, "worktrees/ws/index", "after\n")
	whiteout(filepath.Join(git, "refs/heads/old"))
}

// whole is a snapshot of workspace and git directory.
func (j jointSet) whole(t *testing.T) map[string]string {
	all := snapshot(t, j.dir, true)
	for path, what := range snapshot(t, j.git(), true) {
		all["main"+path] = what
	}
	for path, what := range all {
		all[path] = strings.ReplaceAll(what, filepath.Dir(j.dir), "BASE")
	}
	return all
}

// TestKilledJointLanding: a landing in workspace and git directory that is killed has landed in both or in
// neither, whichever of the two is looked at first.
func TestKilledJointLanding(t *testing.T) {
	prepare := func(base string) (killable, jointSet) {
		tmp, err := os.MkdirTemp(base, "overlay-kill-")
		if err != nil {
			t.Fatal(err)
		}
		k := killable{t, tmp, filepath.Join(tmp, "ws"), filepath.Join(tmp, "state")}
		t.Cleanup(k.remove)
		j := jointSet{k.dir}
		j.setup()
		return k, j
	}
	for filesystem, base := range bases(t) {
		t.Run(filesystem, func(t *testing.T) {
			k, j := prepare(base)
			before := undated(j.whole(t))
			calls := k.done("joint")
			after := undated(j.whole(t))
			for _, path := range []string{"/new/x", "main/refs/heads/topic"} {
				if after[path] == "" {
					t.Fatalf("it does not land: %v", after)
				}
			}
			landed, took := 0, 0
			all := points(filesystem, calls, 7)
			for i, n := range all {
				k, j := prepare(base)
				if !k.killedAt("joint", n) {
					t.Fatalf("call %d was not made", n)
				}
				when := fmt.Sprintf("killed at call %d of %d", n, calls)
				switch i % 4 {
				case 1: // the git directory is another workspace's, too, whose server is there first
					w := &Workspace{state: filepath.Join(k.state, "workspaces", "x"), config: Defaults()}
					g, err := w.openGit(j.git())
					if err != nil {
						t.Fatalf("%s: %v", when, err)
					}
					if err := g.Close(); err != nil {
						t.Fatalf("%s: %v", when, err)
					}
				case 2, 3:
					for _, m := range []int{1 + i%17, 2 + i*7%113, 3 + i*5%397} {
						if !k.killedAt("recover", m) {
							break
						}
					}
				}
				k.opened(when)
				got := undated(j.whole(t))
				switch {
				case maps.Equal(got, before):
					took++
				case maps.Equal(got, after):
					landed++
					k.undone(when, before)
				default:
					t.Fatalf("%s: neither what was before (-before +got):\n%s\nnor what would be after (-after +got):\n%s", when, cmp.Diff(before, got), cmp.Diff(after, got))
				}
				k.remove()
			}
			t.Logf("%d calls; killed at %d of them: %d were taken back, %d done", calls, len(all), took, landed)
			if landed == 0 || took == 0 {
				t.Error("killing came always before it was done, or always after")
			}
		})
	}
}

// undone takes the landing back, which wants both halves of it in the history.
func (k killable) undone(when string, before map[string]string) {
	k.t.Helper()
	w, err := Open(k.dir, k.state, Defaults())
	must(err)
	defer w.Close()
	if report, err := w.Undo(context.Background(), "k1"); err != nil || !report.Landed {
		k.t.Fatalf("%s: undo: %+v, %v", when, report, err)
	}
	got := undated(jointSet{k.dir}.whole(k.t))
	maps.DeleteFunc(got, func(path, _ string) bool { return strings.HasPrefix(path, "main/objects/bb") }) // stay
	if diff := cmp.Diff(before, got); diff != "" {
		k.t.Fatalf("%s: undo (-want +got):\n%s", when, diff)
	}
}

func whiteout(path string) { must(unix.Mknod(path, unix.S_IFCHR, 0)) }
