package overlay

import (
	"os/exec"
	"strings"
	"testing"
)

// requireGit skips a test that needs git itself on both sides.
func requireGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		missing(t, "git", err)
	}
}

// gitSetup makes a repository of one commit. Nothing of whoever runs the tests counts.
const gitSetup = `export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
	git init -q -b main .; git config user.name P; git config user.email p@example.com; echo 1 > f; git add f; git commit -qm one; `

// gitEnv goes before a script of either side.
const gitEnv = `export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=R GIT_AUTHOR_EMAIL=r@example.com GIT_COMMITTER_NAME=R GIT_COMMITTER_EMAIL=r@example.com
	`

// TestGitConfig: what a run changes in the configuration of a git directory lands if it is harmless, and is
// withheld with the reason if not. git itself writes on both sides.
func TestGitConfig(t *testing.T) {
	requireGit(t)
	for _, tt := range []struct {
		name, setup, run, meanwhile string
		path, why                   string // what is withheld, if anything
		check                       string
	}{
		{
			name: "identity and branches", setup: "ln .git/config $BASE/backup; git remote add origin https://example.com/a.git; git update-ref refs/remotes/origin/x HEAD; git branch old; git config branch.old.remote origin",
			run:   "git config user.email new@example.com; git checkout -q -b topic --track origin/x; git branch -D old",
			check: "test $(git config user.email) = new@example.com; test $(git config branch.topic.remote) = origin; test $(git config branch.topic.merge) = refs/heads/x; ! git config branch.old.remote",
		},
		{name: "a new remote", run: "git remote add up git@example.com:a/b.git", check: "test $(git remote get-url up) = git@example.com:a/b.git"},
		{name: "a local remote", run: "git remote add up /tmp/x", path: ".git/config", why: `protected: "the new remote \"up\" has an address that is neither https nor ssh"`, check: "! git remote get-url up"},
		{
			name: "an existing remote", setup: "git remote add origin https://example.com/a.git", run: "git remote set-url origin https://example.org/a.git",
			path: ".git/config", why: "protected: remote.origin.url was changed", check: "test $(git remote get-url origin) = https://example.com/a.git",
		},
		{
			name: "a remote removed", setup: "git remote add origin https://example.com/a.git", run: "git remote remove origin",
			path: ".git/config", why: "protected: remote.origin.url was removed", check: "git remote get-url origin",
		},
		{name: "a program", run: "git config core.fsmonitor ./x; git config user.name N", path: ".git/config", why: "protected: core.fsmonitor was changed", check: "test $(git config user.name) = P; ! git config core.fsmonitor"},
		{name: "an include", run: "echo '[alias] x=!y' > more; git config include.path ../more", path: ".git/config", why: "protected: include.path was changed"},
		{name: "another spelling", run: "printf '[core]\nfsmonitor=x\n' > .git/CONFIG", path: ".git/CONFIG", why: "protected"},
		{name: "a link", run: "mv .git/config x; ln -s ../x .git/config", path: ".git/config", why: "protected"},
		{name: "another name", run: "git config user.name N; ln .git/config x", path: ".git/config", why: "protected: it has another name"},
		{name: "a mode", run: "chmod 666 .git/config", path: ".git/config", why: "protected: its mode was changed", check: "test $(stat -c %a .git/config) != 666"},
		{name: "removed", run: "rm .git/config", path: ".git/config", why: "protected", check: "test -e .git/config"},
		{name: "both sides", run: "git config user.name R", meanwhile: "git config user.name H", path: ".git/config", why: "protected: someone else changed it meanwhile", check: "test $(git config user.name) = H"},
		{name: "both sides alike", run: "git config user.name X", meanwhile: "git config user.name X"},
		{name: "git init", run: "git init -q sub; git -C sub config user.name S", path: "sub/.git/hooks", why: "protected", check: "test $(git -C sub config core.bare) = false; test $(git -C sub config user.name) = S"},
		{name: "git init in a directory", setup: "mkdir sub; echo 1 > sub/x", run: "git init -q --bare sub", path: "sub/hooks", why: "protected", check: "test $(git -C sub config core.bare) = true"},
		{name: "a hostile git init", run: "git init -q sub; git -C sub config core.pager x", path: "sub/.git/config", why: "protected: core.pager was changed", check: "! test -e sub/.git/config; test -e sub/.git/HEAD"},
		{name: "another worktree", run: "git init -q sub; git -C sub config core.worktree /home", path: "sub/.git/config", why: "protected: core.worktree was changed", check: "! test -e sub/.git/config"},
		{name: "a submodule's", setup: "git init -q --bare .git/modules/x", run: "git -C .git/modules/x config core.sshCommand x", path: ".git/modules/x/config", why: "protected: core.sshcommand was changed"},
		{name: "a submodule's remote", setup: "git init -q --bare .git/modules/x", run: "git -C .git/modules/x remote add up https://example.com/x", check: "git -C .git/modules/x remote get-url up"},
		{name: "a linked worktree's", setup: "git worktree add -q $BASE/wt; git config extensions.worktreeConfig true", run: "printf '[core]\nfsmonitor=x\n' > .git/worktrees/wt/config.worktree", path: ".git/worktrees/wt/config.worktree", why: "protected"},
		// Files of an older kind that name remotes, too.
		{name: "a remote in a file", run: "mkdir -p .git/remotes .git/branches; echo 'URL: /x' > .git/remotes/o; echo /x > .git/branches/o", path: ".git/remotes/o", why: "protected", check: "! test -e .git/branches/o"},
		{name: "remotes elsewhere", run: "mkdir x; ln -s ../x .git/remotes", path: ".git/remotes", why: "protected", check: "! test -L .git/remotes"},
		{name: "a reflog elsewhere", run: "rm .git/logs/HEAD; ln -s ../victim .git/logs/HEAD", path: ".git/logs/HEAD", why: "protected", check: "! test -L .git/logs/HEAD"},
		{name: "a reflog elsewhere before it means something", setup: "mkdir -p bare/logs; ln -s ../../victim bare/logs/HEAD", run: "cd bare; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD", path: "bare/HEAD", why: "protected", check: "! test -e bare/HEAD"},
		{name: "a link in a new one", run: "git init -q sub; ln -s /tmp sub/.git/logs", path: "sub/.git/logs", why: "protected", check: "! test -L sub/.git/logs"},
		{name: "a command for later", run: "mkdir .git/rebase-merge; printf 'pick 1\n  exec evil\n' > .git/rebase-merge/git-rebase-todo", path: ".git/rebase-merge/git-rebase-todo", why: "protected: git rebase --continue would run a command", check: "! test -e .git/rebase-merge/git-rebase-todo"},
		{name: "an unfinished rebase", setup: "git checkout -qb b; echo b > f; git commit -qam b; git checkout -q main; echo m > f; git commit -qam m", run: "git checkout -q b; ! git rebase main >/dev/null 2>&1", check: "test -e .git/rebase-merge/git-rebase-todo; git rebase --abort; test $(git log -1 --format=%s) = b"},
		{name: "a short name", run: "mkdir git~1; printf '[core]\nfsmonitor=x\n' > git~1/config", path: "git~1/config", why: "protected: core.fsmonitor was changed"},
		{name: "a harmless file before it means something", setup: "mkdir bare; printf '[core]\nfsmonitor=x\n' > bare/config", run: "cd bare; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[user]\nname=x\n' >> config", path: "bare/HEAD", why: "protected", check: "! test -e bare/HEAD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := onDisk(t, gitSetup+tt.setup)
			report := f.landed(gitEnv+tt.run, tt.meanwhile)
			if len(report.Conflicts) > 0 {
				t.Errorf("conflicts: %+v", report.Conflicts)
			}
			found := tt.path == "" && len(report.Withheld) == 0
			for _, w := range report.Withheld {
				found = found || w == Withheld{tt.path, tt.why}
			}
			if !found {
				t.Errorf("withheld: %+v", report.Withheld)
			}
			f.host(gitEnv + tt.check)
			if out := f.host(gitEnv + "find . -name '*.lock' -o -name '*conflict*'"); strings.TrimSpace(out) != "" {
				t.Errorf("left: %s", out)
			}
		})
	}
}
