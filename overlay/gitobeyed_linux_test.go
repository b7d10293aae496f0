package overlay

import (
	"path/filepath"
	"testing"
)

// TestObeyed: what git's configuration, outside or inside of the workspace, sends git to is protected.
func TestObeyed(t *testing.T) {
	requireGit(t)
	f := onDisk(t, gitSetup+`
		mkdir -p $BASE/home hooks gone inc sub/own linked real 'odd [x]*'
		printf '[core]\nhooksPath = .githooks\n[include]\npath = ~/more\n' > $BASE/home/.gitconfig
		printf '[includeIf "gitdir:/nowhere"]\npath = ../ws/inc/user\n' > $BASE/home/more
		ln -s real linked/hooks; ln -s ../real linked/r
		git config --add core.hooksPath hooks; git config --add core.hooksPath linked/r; git config --add core.hooksPath 'odd [x]*'
		git config include.path ../inc/local; printf '[include]\npath=deep\n' > inc/local
		git init -q sub; git -C sub config core.hooksPath own; git init -q --bare store.git; git -C store.git config core.hooksPath own
		git init -q dot; git -C dot config core.hooksPath .; echo 1 > hooks/old; echo 1 > inc/plain`)
	f.SetGitUser(GitUser{Home: filepath.Join(f.base, "home"), Files: []string{filepath.Join(f.base, "home/.gitconfig"), filepath.Join(f.dir, "my.gitconfig")}})
	report := f.landed(gitEnv+`
		for d in hooks .githooks sub/.githooks new/.githooks sub/own real 'odd [x]*' store.git/own dot HOOKS; do mkdir -p "$d"; echo evil > "$d/pre-commit"; done
		for p in inc/user inc/local inc/deep my.gitconfig; do echo evil > $p; done
		echo 2 > inc/plain; echo 2 > dot/file; echo 2 > 'odd x'; rm hooks/old; mkdir -p own; echo 2 > own/pre-commit`, "")
	want := map[string]bool{}
	for _, p := range []string{
		"hooks/pre-commit", ".githooks", "sub/.githooks", "new/.githooks", "sub/own/pre-commit", "real/pre-commit", "odd [x]*/pre-commit", "store.git/own",
		"dot/pre-commit", "HOOKS", "inc/user", "inc/local", "inc/deep", "my.gitconfig", "hooks/old",
	} {
		want[p] = true
	}
	for _, w := range report.Withheld {
		if !want[w.Path] || w.Why != whyProtected {
			t.Errorf("withheld: %+v", w)
		}
		delete(want, w.Path)
	}
	if len(want) > 0 {
		t.Errorf("landed, and git would obey them: %v", want)
	}
	f.host("grep -qx 2 inc/plain; grep -qx 2 dot/file; grep -qx 2 'odd x'; grep -qx 2 own/pre-commit; test -e hooks/old")
	// A link that would take the place of one.
	report = f.landed("mv linked other; mkdir elsewhere; ln -s elsewhere linked; ln -s elsewhere inc2; mv sub/own sub/x 2>/dev/null; ln -s ../elsewhere sub/own", "")
	f.host("! test -L linked; ! test -L sub/own; test -L inc2")
	if len(report.Withheld) == 0 {
		t.Errorf("%+v", report)
	}
}
