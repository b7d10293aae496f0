package overlay

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tests of git directories outside of the workspace are made with git itself.

// needGit gives git what it wants to commit with, and nothing of the machine's configuration.
func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		missing(t, "git", err)
	}
	for _, v := range []string{
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=init.defaultBranch", "GIT_CONFIG_VALUE_0=main",
		"GIT_CONFIG_KEY_1=protocol.file.allow", "GIT_CONFIG_VALUE_1=always",
	} {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

// inMain makes a repository beside the workspace, main, with a commit; setup runs in it.
const inMain = `rmdir "$BASE/ws"; mkdir "$BASE/main"; cd "$BASE/main"; git init -q --template=; mkdir .git/hooks .git/info; echo 1 > f; git add f; git commit -qm one; `

// linked makes the workspace a linked worktree of main.
func linked(t *testing.T, base string) *fixture {
	t.Helper()
	needGit(t)
	return newFixture(t, base, inMain+`git branch other; git worktree add -q ../ws`)
}

// submodule makes the workspace a submodule of main.
func submodule(t *testing.T, base string) *fixture {
	t.Helper()
	needGit(t)
	return newFixture(t, base, `rmdir "$BASE/ws"; mkdir "$BASE/from" "$BASE/main"; cd "$BASE/from"; git init -q; echo 1 > f; git add f; git commit -qm one
		cd "$BASE/main"; git init -q; git submodule --quiet add ../from sub; git commit -qm two
		mv sub ../ws; sed -i s,gitdir:.*,gitdir:\ ../main/.git/modules/sub, ../ws/.git; git config -f .git/modules/sub/config core.worktree ../../../../ws; git -C ../ws status`)
}

// dotLink makes the workspace's .git a link.
func dotLink(t *testing.T, base string) *fixture {
	t.Helper()
	needGit(t)
	return newFixture(t, base, `mkdir ../store; git init -q; echo 1 > f; git add f; git commit -qm one; mv .git ../store/x.git; ln -s ../store/x.git .git; git config core.worktree "$PWD"; git status`)
}

func (f *fixture) inGit(script, meanwhile string) Report {
	f.t.Helper()
	txn := f.begin()
	runOn(f.t, txn.Layers(), script)
	if meanwhile != "" {
		f.host(meanwhile)
	}
	return f.land(txn)
}

// TestGitDirOutside: what people do with git lands in the workspace and in its git directory.
func TestGitDirOutside(t *testing.T) {
	for name, make := range map[string]func(*testing.T, string) *fixture{"worktree": linked, "submodule": submodule, "link": dotLink} {
		for filesystem, base := range bases(t) {
			if filesystem != "disk" && name != "worktree" {
				continue
			}
			t.Run(name+"/"+filesystem, func(t *testing.T) {
				f := make(t, base)
				report := f.inGit(`git status --short; echo 2 > f; git add f; git commit -qm two; git branch topic; echo 3 > f; git stash -q; git tag v1; echo new > g; git add g`, "")
				if len(report.Notes)+len(report.Withheld)+len(report.Conflicts) > 0 || !slices.Contains(report.Modified, "f") ||
					!slices.ContainsFunc(report.Added, func(path string) bool { return strings.HasSuffix(path, "/refs/heads/topic") }) {
					t.Errorf("report: %+v", report)
				}
				f.host(`test "$(git log --format=%s)" = "$(printf 'two\none')"; test "$(git status --short)" = "A  g"; git rev-parse -q topic v1 stash; git fsck --strict; grep -qx 2 f`)
				report = f.inGit(`git stash pop -q; git checkout -q --detach topic; git checkout -q -; git branch -D topic; git gc -q; git commit -qam three`, "")
				f.host(`! git rev-parse -q --verify topic; test "$(git log -1 --format=%s)" = three; test -z "$(git status --short)"; git fsck --strict; grep -qx 3 f`)
				// The next run sees what this one landed, and a run that fails leaves no trace.
				before := f.host("git rev-parse HEAD; git status --short; ls -R ../main/.git ../store 2>/dev/null || :")
				txn := f.begin()
				runOn(t, txn.Layers(), `test "$(git log -1 --format=%s)" = three; git commit -q --allow-empty -m four; touch "$(git rev-parse --git-dir)/index.lock"`)
				discarded, err := txn.Discard("timeout")
				if err != nil || discarded.Discarded == 0 {
					t.Errorf("discard: %+v, %v", discarded, err)
				}
				if after := f.host("git rev-parse HEAD; git status --short; ls -R ../main/.git ../store 2>/dev/null || :"); after != before {
					t.Errorf("a discarded run changed something:\n%s\n%s", before, after)
				}
			})
		}
	}
}

// TestGitDirOutsideHostile: of the repository that a worktree belongs to, a run changes nothing but what is the
// worktree's or everyone's.
func TestGitDirOutsideHostile(t *testing.T) {
	f := linked(t, os.TempDir())
	f.host(`cd ../main; git worktree add -q ../other other; git config extensions.worktreeConfig true`)
	list := `cd ../main; find . ../other -type f -exec sha256sum {} +; find . -type l; find . -type d -printf '%p %m\n'; git rev-parse main other`
	before := f.host(list)
	for _, attack := range []string{
		`echo evil > $G/hooks/post-commit; chmod +x $G/hooks/post-commit`,
		`git config alias.x '!id'; git config core.fsmonitor ./x`,
		`git config --worktree core.fsmonitor ./x`,
		`mkdir $G/worktrees/ws/hooks; echo x > $G/worktrees/ws/hooks/pre-commit`,
		`echo ../../../elsewhere > $G/worktrees/ws/commondir`,
		`echo /elsewhere/.git > $G/worktrees/ws/gitdir`,
		`rm -rf $G/worktrees/ws`,
		`rm -rf $G/worktrees/other`,
		`git update-ref --no-deref HEAD HEAD; cp $G/worktrees/ws/HEAD $G/worktrees/other/HEAD; cp $G/worktrees/ws/index $G/worktrees/other/index`,
		`echo ref: refs/heads/ws > $G/HEAD; rm $G/index; echo x > $G/ORIG_HEAD; echo x > $G/info/attributes; mkdir $G/modules $G/rebase-merge; echo x > $G/modules/x`,
		`rm -rf $G/objects/??; for f in $G/objects/??/*; do echo x; done`,
		`for f in $G/objects/??/*; do chmod u+w $f; echo garbage > $f; done`,
		`echo /etc > $G/objects/info/alternates`,
		`rm -rf $G/objects; ln -s /tmp $G/objects`,
		`ln -s /tmp $G/objects/zz; ln -s /etc/passwd $G/refs/heads/x; ln -s /tmp $G/logs/refs/x`,
		`git commit -q --allow-empty -m x; git update-ref refs/heads/main HEAD`,
		`git commit -q --allow-empty -m x; git update-ref refs/heads/other HEAD`,
		`rm $G/refs/heads/main`,
		`rm -rf $G/refs; mkdir -p $G/refs/heads`,
		`git commit -q --allow-empty -m x; git pack-refs --all; sed -i "s/.* refs.heads.main$/$(git rev-parse HEAD) refs\/heads\/main/" $G/packed-refs`,
		`git commit -q --allow-empty -m x; git pack-refs --all; echo ' x' >> $G/packed-refs`,
		`git commit -q --allow-empty -m x; git pack-refs --all; printf x >> $G/packed-refs`,
		`echo ref: refs/heads/ws > $G/refs/heads/main`,
		`rm $G/refs/heads/main; mkdir -p $G/refs/heads/main; cp $G/refs/heads/ws $G/refs/heads/main/x`,
		`git replace HEAD $(git commit-tree -m evil $(git mktree </dev/null))`,
		`git commit -q --allow-empty -m x; git replace HEAD~1 $(git commit-tree -m evil $(git mktree </dev/null)); git pack-refs --all`,
		`git commit -q --allow-empty -m x; git rev-parse main > $G/shallow`,
		`touch $G/refs/heads/main.lock $G/packed-refs.lock $G/worktrees/ws/index.lock $G/index.lock`,
		`rm -rf $G/packed-refs; mkdir $G/packed-refs; rm -rf $G/logs; echo x > $G/logs`,
		`chmod 700 $G $G/objects $G/refs $G/worktrees $G/worktrees/other`,
		`mkdir $G/worktrees/new; echo x > $G/worktrees/new/HEAD; echo ../.. > $G/worktrees/new/commondir; echo /etc/.git > $G/worktrees/new/gitdir`,
		`mkdir -p $G/objects/pack/x/hooks $G/refs/heads/y; echo HEAD > $G/refs/heads/y/HEAD; mkdir $G/refs/heads/y/objects $G/refs/heads/y/refs; echo x > $G/refs/heads/y/config`,
	} {
		report := f.inGit("G=../main/.git\n"+attack, "")
		f.host(`test -z "$(find ../main/.git -name '*.lock')$(git -C ../main replace -l)"; ! test -e ../main/.git/shallow`)
		got := f.host(`rm -rf ../main/.git/refs/heads/y ../main/.git/objects/pack/x; ` + list)
		if changed := changedLines(before, got); len(changed) > 0 {
			t.Errorf("%s\nchanged %s\n%+v", attack, strings.Join(changed, "\n"), report)
		}
	}
	f.host(`git -C ../main fsck --strict; git -C ../other status; git status`)
	// The control: the same kind of thing does land where it may.
	f.inGit(`git commit -q --allow-empty -m x; git update-ref refs/heads/free HEAD`, "")
	f.host(`test "$(git rev-parse free)" = "$(git rev-parse HEAD)"`)
}

// changedLines are the lines of before that are not in after, but for those that a commit in the worktree changes.
func changedLines(before, after string) (lost []string) {
	now := map[string]bool{}
	for line := range strings.Lines(after) {
		now[line] = true
	}
	for line := range strings.Lines(before) {
		own := strings.Contains(line, "worktrees/ws/") || strings.HasSuffix(line, "refs/heads/ws\n") || strings.HasSuffix(line, "packed-refs\n") ||
			strings.HasSuffix(line, "refs/heads/main\n") || strings.HasSuffix(line, "refs/heads/other\n") // rev-parse says where these are
		if !now[line] && !own {
			lost = append(lost, line)
		}
	}
	return lost
}

// TestHostileDotGit: a .git can name anything; nothing is mounted unless what it names names the workspace.
func TestHostileDotGit(t *testing.T) {
	needGit(t)
	const victim = `git init -q ../victim; git -C ../victim commit -q --allow-empty -m v; `
	for _, tc := range []struct{ name, setup, note string }{
		{"another repository", victim + `echo "gitdir: $BASE/victim/.git" > .git`, "does not name this workspace"},
		{"a relative path", victim + `echo "gitdir: ../victim/.git" > .git`, "does not name this workspace"},
		{"a link to another repository", victim + `ln -s ../victim/.git .git`, "does not name this workspace"},
		{"another one's worktree", victim + `git -C ../victim worktree add -q ../wt; cp ../wt/.git .git`, "of another worktree"},
		{"another one's submodule", victim + `git -C ../victim config core.worktree ..; echo "gitdir: $BASE/victim/.git" > .git`, "core.worktree names another directory"},
		{"a worktree that says it is elsewhere", victim + `git -C ../victim worktree add -q ../wt; git init -q ../evil; mkdir ../victim/x; cp ../victim/.git/worktrees/wt/* ../victim/x 2>/dev/null || :; echo "$PWD/.git" > ../victim/x/gitdir
			echo ../.git > ../victim/x/commondir; echo "gitdir: $BASE/victim/x" > .git`, "commondir does not name"},
		{"a system directory", `echo "gitdir: /etc" > .git`, "can't be read"},
		{"a file", `echo "gitdir: /etc/passwd" > .git`, "is no directory"},
		{"a FIFO", `mkfifo ../fifo; echo "gitdir: ../fifo" > .git`, "is no directory"},
		{"a directory of FIFOs", `mkdir ../d; for f in HEAD config commondir gitdir; do mkfifo ../d/$f; done; echo "gitdir: ../d" > .git`, "not a regular file"},
		{"a huge pointer", `mkdir ../d; truncate -s 1G ../d/commondir; echo "gitdir: ../d" > .git`, "longer than"},
		{"a link that goes nowhere", `ln -s ../store/none.git .git`, "is not there"},
		{"a link to itself", `ln -s .git .git`, "too many links"},
		{"/proc", `echo "gitdir: /proc/self/cwd" > .git`, "no place for one"},
		{"a newline", "printf 'gitdir: /no\\nwhere\\n' > .git", "is not there"},
		{"a chain", victim + `echo "gitdir: ../chain/.git" > .git; mkdir ../chain; echo "gitdir: ../victim/.git" > ../chain/.git`, "is no directory"},
		{"what anyone can write", `git init -q; git config core.worktree "$PWD"; mkdir ../d; mv .git ../d/g; chmod 777 ../d; echo "gitdir: ../d/g" > .git`, "anyone can write"},
		{"the home of the state", `git init -q; git config core.worktree "$PWD"; mkdir ../state; mv .git ../state/g; echo "gitdir: ../state/g" > .git`, "airlock's own state"},
		{"the workspace lies in it", `git init -q; git config core.worktree "$PWD"; mv .git/* ..; rm -r .git; echo "gitdir: .." > .git`, "the workspace lies in it"},
		{"a way up from a link", `git init -q; git config core.worktree "$PWD"; mkdir -p ../d/sub; mv .git ../d/g; ln -s ../d/sub l; echo "gitdir: l/../g" > .git`, "goes up from a link"},

		// These name nothing, for git neither.
		{"itself", `echo "gitdir: .git" > .git`, ""},
		{"a FIFO as .git", `mkfifo .git`, ""},
		{"a huge .git", `truncate -s 1G .git`, ""},
		{"nothing", `echo "gitdir: " > .git`, ""},
		{"a NUL", `printf 'gitdir: /a\0b' > .git`, ""},
		{"the workspace's own", `git init -q; mv .git g; echo "gitdir: g" > .git`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := onDisk(t, tc.setup)
			txn := f.begin()
			if layers := txn.Layers(); len(layers) != 1 {
				t.Errorf("mounted %+v", layers)
			}
			must(os.WriteFile(filepath.Join(txn.Layer().Upper, "landed"), nil, 0o644)) // the rest works all the same
			report := f.land(txn)
			notes := strings.Join(report.Notes, "\n")
			if len(report.Notes) > 1 || !strings.Contains(notes, tc.note) || tc.note == "" && notes != "" {
				t.Errorf("notes %q, want one on %q", report.Notes, tc.note)
			}
			f.host("test -f landed")
		})
	}
}

// TestGitDirOfAnother: the git directory must be the workspace's owner's, and so must be the way to it.
func TestGitDirOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		missing(t, "root", errors.New("only root can give a directory away"))
	}
	for what, path := range map[string]string{"the git directory": "../main/.git", "the worktree's": "../main/.git/worktrees/ws", "the way to it": "../main", "its HEAD": "../main/.git/HEAD"} {
		f := linked(t, os.TempDir())
		f.host("chown 1:1 " + path)
		txn := f.begin()
		if len(txn.Layers()) != 1 {
			t.Errorf("%s: mounted", what)
		}
		if report := f.land(txn); !strings.Contains(strings.Join(report.Notes, ""), "another user") {
			t.Errorf("%s: %+v", what, report)
		}
	}
}

// TestGitRule: whoever opens the workspace has a say, too.
func TestGitRule(t *testing.T) {
	f := linked(t, os.TempDir())
	var asked string
	f.AllowGit(func(dir string) error { asked = dir; return errors.New("no such thing") })
	txn := f.begin()
	if len(txn.Layers()) != 1 || asked != filepath.Join(f.base, "main/.git") {
		t.Errorf("mounted, asked of %q", asked)
	}
	if report := f.land(txn); len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "no such thing") {
		t.Errorf("%+v", report)
	}
	f.AllowGit(func(string) error { return nil })
	if txn = f.begin(); len(txn.Layers()) != 2 {
		t.Error("the control is not mounted")
	}
	f.land(txn)
}

// TestJointConflict: what the host commits meanwhile is never lost, and what lands is never half of a commit.
func TestJointConflict(t *testing.T) {
	f := linked(t, os.TempDir())
	report := f.inGit(`echo run > f; git commit -qam run`, `git commit -q --allow-empty -m host`)
	if !slices.ContainsFunc(report.Withheld, func(w Withheld) bool { return strings.HasPrefix(w.Path, "../main/.git") }) {
		t.Errorf("report: %+v", report)
	}
	f.host(`git fsck --strict; test "$(git log -1 --format=%s)" = host; grep -qx run f; test -z "$(find ../main/.git -name '*conflict*')"
		test "$(git log -1 --format=%s refs/airlock/r1/heads/ws)" = run; git checkout -q f`)
	// An index that the host only refreshed, and a branch of another working tree, are no conflict.
	report = f.inGit(`echo run2 > h; git add h; git commit -qm run2`, `touch f; git status --short; git -C ../main commit -q --allow-empty -m main`)
	f.host(`git fsck --strict; test "$(git log -1 --format=%s)" = run2; test -z "$(git status --short)"; test "$(git -C ../main log -1 --format=%s)" = main`)
	if len(report.Conflicts)+len(report.Withheld) > 0 {
		t.Errorf("report: %+v", report)
	}

	f = newFixture(t, os.TempDir(), inMain+`git worktree add -q ../ws`, func(c *Config) { c.OnConflict = "discard" })
	report = f.inGit(`echo run > f; echo g > g; git add g; git commit -qam run`, `echo host > f`)
	if report.Landed || report.Reason != "conflict: f changed meanwhile" {
		t.Errorf("report: %+v", report)
	}
	f.host(`git fsck --strict; test "$(git log -1 --format=%s)" = one; grep -qx host f; ! test -e g; test -z "$(git stash list)"`)
}

// TestTwoWorktrees: two worktrees of a repository, and the main one, each with its server.
func TestTwoWorktrees(t *testing.T) {
	f := linked(t, os.TempDir())
	f.host("git -C ../main worktree add -q ../other other")
	open := func(name string) *fixture {
		t.Helper()
		w, err := Open(filepath.Join(f.base, name), f.state, Defaults())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Close() })
		return &fixture{t: t, base: f.base, dir: filepath.Join(f.base, name), state: f.state, Workspace: w}
	}
	other, main := open("other"), open("main")
	// They overlap: all begin before any lands.
	// The main one goes first: for it any ref that moved is a reason to keep its own apart.
	all := []*fixture{main, f, other}
	var txns []*Txn
	for i, one := range all {
		txn, err := one.Begin(context.Background(), "t"+string(rune('a'+i)))
		if err != nil {
			t.Fatal(err)
		}
		txns = append(txns, txn)
		runOn(t, txn.Layers(), `echo mine > $(basename "$PWD"); git add .; git commit -qm "of $(basename "$PWD")"`)
	}
	for i, one := range all {
		report := one.land(txns[i])
		if slices.ContainsFunc(report.Withheld, func(w Withheld) bool { return !strings.Contains(w.Path, "/logs/") }) {
			t.Errorf("%s: %+v", one.dir, report)
		}
	}
	for _, one := range all {
		name := filepath.Base(one.dir)
		one.host(`test "$(git log -1 --format=%s)" = "of ` + name + `"; test -z "$(git status --short)"; git fsck --strict`)
	}
}

// TestJointUndo: both halves are taken back, or none.
func TestJointUndo(t *testing.T) {
	f := linked(t, os.TempDir())
	ctx := context.Background()
	list := `cat f; git rev-parse HEAD; git for-each-ref; cat ../main/.git/worktrees/ws/index | sha256sum`
	before := f.host(list)
	f.inGit(`echo run > f; git commit -qam run; git branch topic`, "")
	f.host("git status --short") // writes the index anew
	landed := f.host(list)
	if landed == before {
		t.Fatal("nothing landed")
	}
	var diff strings.Builder
	if err := f.Diff(ctx, "r1", &diff); err != nil || !strings.Contains(diff.String(), "a/f b/f") || !strings.Contains(diff.String(), "/../main/.git/refs/heads/topic") {
		t.Errorf("diff: %v\n%s", err, diff.String())
	}
	if report, err := f.Undo(ctx, "r1"); err != nil || !slices.Contains(report.Deleted, "../main/.git/refs/heads/topic") || !slices.Contains(report.Modified, "f") {
		t.Errorf("undo: %+v, %v", report, err)
	}
	if got := f.host(list + "; git fsck --strict 1>&2"); !strings.HasPrefix(got, before) {
		t.Errorf("undo gave\n%s\nwant\n%s", got, before)
	}
	if _, err := f.Undo(ctx, "r1"); !errors.As(err, new(*NotKeptError)) {
		t.Errorf("a second undo: %v", err)
	}
	if report, err := f.Undo(ctx, ""); err != nil || !report.Landed {
		t.Errorf("undo of the undo: %+v, %v", report, err)
	}
	if got := f.host(list); got != landed {
		t.Errorf("undo of the undo gave\n%s\nwant\n%s", got, landed)
	}

	f.inGit(`echo again > f; git commit -qam again`, "")
	f.host("git commit -q --allow-empty -m host; git branch keep HEAD~1")
	before = f.host(list)
	report, err := f.Undo(ctx, "")
	if err != nil || report.Landed || report.Discarded == 0 {
		t.Errorf("undo after a commit of the host: %+v, %v", report, err)
	}
	if got := f.host(list); got != before {
		t.Errorf("it changed\n%s\nto\n%s", before, got)
	}

	git, err := f.gitAt(filepath.Join(f.base, "main/.git"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := git.Undo(ctx, ""); err == nil || !strings.Contains(err.Error(), "taken back there") {
		t.Errorf("undo of one half: %v", err)
	}
}
