package overlay

import (
	"os"
	"strings"
	"testing"
)

// TestWorktreeInside: a worktree that a run adds within the workspace lands whole, and works.
func TestWorktreeInside(t *testing.T) {
	needGit(t)
	for name, flag := range map[string]string{"the first": "", "another": "git worktree add -q before"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, os.TempDir(), `git init -q; echo 1 > f; git add f; git commit -qm one; `+flag)
			report := f.landed(`git worktree add -q sub/inside; cd sub/inside; echo 2 > f; git commit -qam two`, "")
			if len(report.Withheld) > 0 {
				t.Errorf("report: %+v", report)
			}
			f.host(`git worktree list; cd sub/inside; test "$(git log -1 --format=%s)" = two; test -z "$(git status --short)"; git fsck --strict; git worktree prune -v; git commit -q --allow-empty -m host`)
			f.landed(`cd sub/inside; test "$(git log -1 --format=%s)" = host; echo 3 > f; git commit -qam three`, "")
			f.host(`cd sub/inside; test "$(git log -1 --format=%s)" = three; test -z "$(git status --short)"`)
		})
	}
}

// TestForgedWorktree: half a pair, or one that names anything else, does not land.
func TestForgedWorktree(t *testing.T) {
	needGit(t)
	const add = `git worktree add -q in; W=.git/worktrees/in; `
	for name, tc := range map[string]struct{ run, gone string }{
		"no way back":                {add + `echo "$PWD/elsewhere/.git" > $W/gitdir`, "in/.git .git/worktrees/in/gitdir .git/worktrees/in/commondir"},
		"a repository elsewhere":     {add + `echo "gitdir: /tmp/x/.git/worktrees/in" > in/.git`, "in/.git .git/worktrees/in/gitdir"},
		"another common directory":   {add + `echo ../../../evil > $W/commondir`, "in/.git .git/worktrees/in/commondir"},
		"an absolute one":            {add + `echo "$PWD/.git" > $W/commondir`, ".git/worktrees/in/commondir"},
		"a directory of no worktree": {`mkdir -p evil/objects evil/refs; echo ref: refs/heads/main > evil/HEAD; mkdir in; echo "gitdir: $PWD/evil" > in/.git`, "in/.git"},
		"a repository of this run":   {`git init -q evil; git -C evil commit -q --allow-empty -m x; git -C evil worktree add -q ../in; git -C evil config core.fsmonitor ./x`, "in/.git evil/.git/config"},
		"a .git that is a link":      {add + `rm in/.git; ln -s ../$W in/.git`, "in/.git .git/worktrees/in/gitdir"},
		"its configuration":          {add + `git config extensions.worktreeConfig true; git -C in config --worktree core.fsmonitor ./x; mkdir $W/hooks; echo x > $W/hooks/pre-commit`, ".git/worktrees/in/config.worktree .git/worktrees/in/hooks"},
		"up and down":                {add + `echo "gitdir: $PWD/x/../.git/worktrees/in" > in/.git`, "in/.git"},
		"the workspace's own .git":   {add + `rm -r in; echo "$PWD/.git/.git" > $W/gitdir; echo "gitdir: $PWD/$W" > .git/.git`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, os.TempDir(), `git init -q; echo 1 > f; git add f; git commit -qm one`)
			f.landed(tc.run, "")
			for path := range strings.FieldsSeq(tc.gone) {
				f.host(`! test -e ` + path + ` && ! test -L ` + path)
			}
			f.host(`test -z "$(git config --get-all core.fsmonitor)"; git status; if cd in; then git config --get-all core.fsmonitor && exit 1; fi 2>/dev/null || :`)
		})
	}
	// One that the host has is neither moved nor given another repository.
	f := newFixture(t, os.TempDir(), `git init -q; echo 1 > f; git add f; git commit -qm one; git worktree add -q in`)
	before := f.host(`cat in/.git .git/worktrees/in/gitdir .git/worktrees/in/commondir`)
	f.landed(`mkdir there; mv in/.git there/.git; echo "$PWD/there/.git" > .git/worktrees/in/gitdir; echo ../../../x > .git/worktrees/in/commondir`, "")
	if after := f.host(`cat in/.git .git/worktrees/in/gitdir .git/worktrees/in/commondir`); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
}
