package overlay

import (
	"slices"
	"strings"
	"testing"
)

// commit is what either side does most.
const commit = "echo x >> g; git add g; git commit -qm g; "

// TestGitBothSides: git works in a run and on the host at once. Afterwards the repository is sound, and no
// commit of either side is lost.
func TestGitBothSides(t *testing.T) {
	requireGit(t)
	const kept = whyTorn + "; kept as "
	for _, tt := range []struct {
		name, setup, run, meanwhile string
		why                         string // why .git was withheld, "" if it landed
		check                       string
	}{
		{name: "a commit", run: commit, check: "test $(git log --format=%s | head -1) = g; test -z \"$(git status --porcelain)\""},
		{
			name: "a refreshed index", setup: "touch -d '1 hour ago' f; git status >/dev/null", run: commit, meanwhile: "sleep 0.01; touch f; git update-index -q --refresh",
			check: "test $(git log --format=%s | head -1) = g; test -z \"$(git status --porcelain)\"",
		},
		{name: "commits on both sides", run: commit, meanwhile: "echo h > h; git add h; git commit -qm h", why: kept + "refs/airlock/r1/heads/main", check: `
			test $(git log --format=%s | head -1) = h; test $(git log --format=%s airlock/r1/heads/main | head -1) = g; test "$(git status --porcelain)" = "?? g"`},
		{name: "added on the host", setup: "echo 1 > h", run: commit, meanwhile: "git add h", why: kept + "refs/airlock/r1/heads/main", check: "git diff --cached --name-only | grep -qx h"},
		{name: "added in the run", run: "echo r > r; git add r", meanwhile: commit, why: whyTorn, check: "test $(git log --format=%s | head -1) = g; grep -qx r r"},
		{name: "looked at in the run", setup: "touch -d '1 hour ago' f; git status >/dev/null", run: "touch f; git status", meanwhile: commit, check: "test $(git log --format=%s | head -1) = g"},
		{name: "a fetch on the host", setup: "git clone -q --bare . $BASE/up; git remote add up $BASE/up; git -C $BASE/up branch new", run: commit, meanwhile: "git fetch -q up", why: kept + "refs/airlock/r1/heads/main", check: "git rev-parse -q up/new"},
		{name: "a fetch that brings nothing", setup: "git clone -q --bare . $BASE/up; git remote add up $BASE/up; git fetch -q up", run: commit, meanwhile: "git fetch -q up", check: "test $(git log --format=%s | head -1) = g"},
		{name: "a branch on the host", setup: "git branch b", run: commit + "git branch c", meanwhile: "git branch -D b", why: kept + "refs/airlock/r1/heads/c, refs/airlock/r1/heads/main"},
		{name: "a ref on the host", setup: "git branch b; git commit -q --allow-empty -m 2", run: commit, meanwhile: "echo $(git rev-parse main) > .git/refs/heads/b", why: kept + "refs/airlock/r1/heads/main", check: "test $(git log --format=%s b | head -1) = 2"},
		{name: "a switch on the host", setup: "git branch b", run: commit, meanwhile: "git checkout -q b", why: kept + "refs/airlock/r1/heads/main", check: "test $(git branch --show-current) = b"},
		{name: "a detached head", run: "git checkout -q --detach; " + commit, meanwhile: "git commit -q --allow-empty -m h", why: kept + "refs/airlock/r1/HEAD", check: "test $(git log --format=%s airlock/r1/HEAD | head -1) = g"},
		{name: "a second time", setup: "git update-ref refs/airlock/old/x HEAD", run: commit + "git tag v1; git stash -q 2>/dev/null || :", meanwhile: "git commit -q --allow-empty -m h", why: kept + "refs/airlock/r1/heads/main, refs/airlock/r1/tags/v1", check: "git rev-parse -q airlock/old/x"},
		{name: "a ref of our name", setup: "git update-ref refs/airlock HEAD", run: commit, meanwhile: "git commit -q --allow-empty -m h", why: kept + "refs/airlock-r1/heads/main"},
		{name: "gc in the run, a commit on the host", setup: commit + commit, run: "git gc -q --prune=now; " + commit, meanwhile: "echo h > h; git add h; git commit -qm h", why: kept + "refs/airlock/r1/heads/main", check: "test $(git log --format=%s | head -1) = h; git log airlock/r1/heads/main"},
		{name: "a branch moved on the host, and packed in the run", setup: "git branch b; git commit -q --allow-empty -m 2", run: "git pack-refs --all", meanwhile: "git update-ref refs/heads/b main", why: whyTorn, check: "test $(git log --format=%s b | head -1) = 2; ! git rev-parse -q --verify airlock/r1/heads/b"},
		{name: "gc in the run", setup: commit + commit, run: "git gc -q --prune=now; git branch x", check: "git rev-parse -q x; test -z \"$(git status --porcelain)\"; test $(find .git/objects/pack -name '*.pack' | wc -l) = 1"},
		{name: "gc on the host", setup: commit + commit, run: commit, meanwhile: "git gc -q --prune=now", why: kept + "refs/airlock/r1/heads/main"},
		{name: "prune in the run, objects on the host", setup: commit, run: "git gc -q --prune=now", meanwhile: "n=0; while test -e .git/objects/$(echo $n | git hash-object --stdin | cut -c1-2); do n=$((n+1)); done; echo $n >$BASE/n; git hash-object -w --stdin <$BASE/n >/dev/null", check: "git cat-file -e $(git hash-object --stdin <$BASE/n)"},
		{name: "git is at work on the host", run: commit, meanwhile: "touch .git/index.lock", why: "git is at work there, or left .git/index.lock; kept as refs/airlock/r1/heads/main", check: "rm .git/index.lock"},
		{name: "git is at work on a ref", run: commit, meanwhile: "touch .git/refs/heads/main.lock", why: kept + "refs/airlock/r1/heads/main", check: "rm .git/refs/heads/main.lock"},
		{name: "an editor saves beside it", setup: "touch -d '1 hour ago' f; git status >/dev/null", run: commit, meanwhile: "echo 2 > n; mv n f; git status >/dev/null; git update-index -q --refresh || :", check: "test $(git log --format=%s | head -1) = g; test \"$(git status --porcelain)\" = ' M f'"},
		{name: "the repository is another one", run: commit, meanwhile: "mv .git $BASE/old; git init -q -b main .; git config user.name H; git config user.email h@h; git add f; git commit -qm other; git -C $BASE/old log -1 >/dev/null", why: whyTorn, check: "test $(git log --format=%s) = other"},
		{name: "a submodule's repository", setup: "git init -q --bare .git/modules/s", run: "git -C .git/modules/s update-ref refs/heads/x $(git -C .git/modules/s commit-tree -m s $(git -C .git/modules/s mktree </dev/null))", meanwhile: commit, check: "test $(git -C .git/modules/s log --format=%s x) = s; test $(git log --format=%s | head -1) = g"},
		{name: "a repository below", setup: "git init -q -b main sub; cd sub; echo 1 > f; git add f; git -c user.name=x -c user.email=x commit -qm 1; cd ..", run: "cd sub; " + commit, meanwhile: commit, check: "test $(git -C sub log --format=%s | head -1) = g; test $(git log --format=%s | head -1) = g"},
		{name: "a rebase in the run", setup: "git checkout -qb b; " + commit + "git checkout -q main; git commit -q --allow-empty -m m", run: "git checkout -q b; git rebase -q main", check: "test $(git log --format=%s | head -2 | tr '\n' ,) = g,m,; test -z \"$(git status --porcelain)\""},
		{name: "version 4", setup: "git update-index --index-version 4; touch -d '1 hour ago' f; git status >/dev/null", run: commit, meanwhile: "sleep 0.01; touch f; git update-index -q --refresh", check: "test $(git log --format=%s | head -1) = g"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := onDisk(t, gitEnv+gitSetup+tt.setup)
			meanwhile := tt.meanwhile
			if meanwhile != "" {
				meanwhile = gitEnv + meanwhile
			}
			report := f.landed(gitEnv+tt.run, meanwhile)
			var why []string
			for _, w := range report.Withheld {
				switch {
				case w.Path == ".git":
					why = append(why, w.Why)
				case !strings.HasPrefix(w.Path, ".git/logs/") && !slices.Contains(gitRecords, strings.TrimPrefix(w.Path, ".git/")):
					t.Errorf("withheld: %+v", w)
				}
			}
			if got := strings.Join(why, "; "); got != tt.why {
				t.Errorf("got  %q\nwant %q", got, tt.why)
			}
			f.host(gitEnv + tt.check)
			if out := f.host("find .git -name '*.lock' -o -name '*conflict*'; git fsck --strict --no-dangling 2>&1"); strings.TrimSpace(out) != "" {
				t.Errorf("left: %s", out)
			}
		})
	}
}

// TestGitLocks: a lock that a git left which was ended with its run does not land, and a run that ends badly
// leaves none.
func TestGitLocks(t *testing.T) {
	requireGit(t)
	f := onDisk(t, gitEnv+gitSetup)
	report := f.landed(gitEnv+"touch .git/index.lock .git/refs/heads/x.lock .git/gc.pid; git init -q sub; touch sub/.git/HEAD.lock; echo 1 > Cargo.lock", "")
	f.host("test -e Cargo.lock; test -e sub/.git/HEAD; ! ls .git/index.lock .git/refs/heads/x.lock .git/gc.pid sub/.git/HEAD.lock")
	if !slices.Contains(report.Withheld, Withheld{".git/index.lock", "left by a git that was ended"}) {
		t.Errorf("%+v", report.Withheld)
	}
	txn := f.begin()
	run(t, txn.Layer(), gitEnv+"touch .git/index.lock")
	if _, err := txn.Discard("timeout"); err != nil {
		t.Fatal(err)
	}
	f.host("! test -e .git/index.lock; " + gitEnv + commit)
}

// TestGitUndo: a landing that kept refs is taken back with them.
func TestGitUndo(t *testing.T) {
	requireGit(t)
	f := onDisk(t, gitEnv+gitSetup)
	f.landed(gitEnv+commit, gitEnv+"git commit -q --allow-empty -m h")
	f.host("git rev-parse -q --verify airlock/r1/heads/main")
	if report, err := f.Undo(t.Context(), ""); err != nil || len(report.Conflicts) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
	f.host("! git rev-parse -q --verify airlock/r1/heads/main; ! test -e .git/refs/airlock; git fsck --strict; test $(git log --format=%s | head -1) = h")
}
