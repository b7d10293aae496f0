package overlay

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestLand goes through single runs, each with what the host does meanwhile, the report, and a check
// of the workspace afterwards. The table is what makes this file long.
func TestLand(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		setup, run, meanwhile string
		want                  Report
		check                 string     // a host script that must succeed
		discard               bool       // on_conflict
		reviewed              []Conflict // of a run that waited, if they are others
	}{
		{
			name:  "add modify delete",
			setup: "echo one > a.txt; mkdir sub; echo b > sub/b.txt; echo x > gone.txt",
			run:   "cat a.txt; echo two > a.txt; echo new > sub/new.txt; rm gone.txt",
			want:  Report{Added: []string{"sub/new.txt"}, Modified: []string{"a.txt"}, Deleted: []string{"gone.txt"}},
			check: "grep -qx two a.txt; grep -qx new sub/new.txt; ! test -e gone.txt",
		},
		{
			name:  "nothing",
			setup: "echo one > a; mkdir d; echo 2 > d/b",
			run:   "cat a d/b; touch -a a; : >> d/b; chmod 644 a; ls -l d",
		},
		{
			name:  "the host edits, with its time forged",
			setup: "echo one > a.txt; echo s > same.txt; echo d > del.txt; echo u > untouched.txt",
			run:   "echo run > a.txt; echo both > same.txt; rm del.txt; echo mine > created.txt; echo z > z.txt",
			meanwhile: "echo AAA > a.txt; touch -d 2001-01-01 a.txt; echo both > same.txt; echo edited > del.txt; " +
				"echo theirs > created.txt; echo u2 > untouched.txt",
			want: Report{Added: []string{"z.txt"}, Conflicts: []Conflict{
				{Path: "a.txt", KeptAs: "a.txt.conflict-r1"}, {Path: "created.txt", KeptAs: "created.txt.conflict-r1"}, {Path: "del.txt"},
			}},
			check: "grep -qx AAA a.txt; grep -qx run a.txt.conflict-r1; grep -qx both same.txt; grep -qx edited del.txt; " +
				"grep -qx mine created.txt.conflict-r1; grep -qx theirs created.txt; grep -qx u2 untouched.txt; ! ls same.txt.*",
		},
		{
			name:      "a conflict discards the rest if so configured",
			setup:     "echo one > a; echo 1 > b",
			run:       "echo run > a; echo run > b; echo run > c",
			meanwhile: "echo host > a",
			discard:   true,
			want: Report{
				Discarded: 3, Reason: "conflict: a changed meanwhile",
				Conflicts: []Conflict{{Path: "a"}},
			},
			check: "grep -qx host a; grep -qx 1 b; ! test -e c; ! ls *conflict*",
		},
		{
			name:      "a conflict file is never overwritten",
			setup:     "echo 1 > f; echo keep > f.conflict-r1; echo keep > f.conflict-r1-2",
			run:       "echo run > f",
			meanwhile: "echo host > f",
			want:      Report{Conflicts: []Conflict{{Path: "f", KeptAs: "f.conflict-r1-3"}}},
			check:     "grep -qx keep f.conflict-r1; grep -qx keep f.conflict-r1-2; grep -qx run f.conflict-r1-3; grep -qx host f",
		},
		{
			name:  "opaque directories",
			setup: "mkdir -p d/s e keep; echo 1 > d/old; echo 1 > d/s/t; echo 1 > e/f; echo 1 > file; echo plain > keep/.wh.test",
			run:   "rm -r d; mkdir d; touch d/new; rm -r e; echo now-a-file > e; rm file; mkdir -p file/sub; echo x >> keep/.wh.test",
			want: Report{
				Added: []string{"d/new", "e", "file/sub"}, Modified: []string{"keep/.wh.test"},
				Deleted: []string{"d/old", "d/s/t", "e/f", "file"},
			},
			check: `test "$(ls d)" = new; test -f e; test -d file/sub; grep -q plain keep/.wh.test`,
		},
		{
			name:      "an edit in a removed directory stays",
			setup:     "mkdir -p d/s; echo 1 > d/a; echo 1 > d/s/b; echo 1 > d/s/c; mkdir -p e/x; echo 1 > e/1; echo 1 > e/x/2",
			run:       "rm -r d e; mkdir e; echo new > e/3",
			meanwhile: "echo edit > d/s/b; echo edit > e/x/2",
			want: Report{
				Added: []string{"e/3"}, Deleted: []string{"d/a", "d/s/c", "e/1"},
				Conflicts: []Conflict{{Path: "d/s/b"}, {Path: "e/x/2"}},
			},
			check: `test "$(find d e -type f | sort | tr '\n' ' ')" = "d/s/b e/3 e/x/2 "; grep -qx edit d/s/b`,
		},
		{
			name:      "a file in the place of a directory with an edit",
			setup:     "mkdir d; echo 1 > d/a; echo 1 > d/b",
			run:       "rm -r d; echo file > d",
			meanwhile: "echo edit > d/a",
			want:      Report{Conflicts: []Conflict{{Path: "d", KeptAs: "d.conflict-r1"}}},
			check:     "grep -qx edit d/a; grep -qx 1 d/b; grep -qx file d.conflict-r1",
		},
		{
			name:      "a directory swapped for another",
			setup:     "mkdir d other; echo 1 > d/f; echo 2 > d/g; echo other > other/f; echo other > other/g",
			run:       "echo run > d/f; rm d/g",
			meanwhile: "mv d d.old; mv other d",
			want:      Report{Conflicts: []Conflict{{Path: "d/f", KeptAs: "d/f.conflict-r1"}, {Path: "d/g"}}},
			check:     "grep -qx other d/f; grep -qx other d/g; grep -qx run d/f.conflict-r1; grep -qx 1 d.old/f",
		},
		{
			name:      "a removed directory swapped for another",
			setup:     "mkdir d other; echo 1 > d/f; echo other > other/f",
			run:       "rm -r d",
			meanwhile: "mv d d.old; mv other d",
			want:      Report{Conflicts: []Conflict{{Path: "d"}}},
			reviewed:  []Conflict{{Path: "d/f"}},
			check:     "grep -qx other d/f; grep -qx 1 d.old/f",
		},
		{
			name:      "a directory that the host removed",
			setup:     "mkdir d; echo 1 > d/f; echo 1 > d/g; echo 1 > d/h",
			run:       "echo run > d/f; rm d/g",
			meanwhile: "rm -r d",
			want:      Report{Conflicts: []Conflict{{Path: "d", KeptAs: "d.conflict-r1", Gone: true}}},
			check:     `! test -e d; test "$(ls d.conflict-r1)" = f; grep -qx run d.conflict-r1/f`,
		},
		{
			name:      "both removed",
			setup:     "mkdir d; echo 1 > d/f; echo 1 > g",
			run:       "rm -r d; rm g",
			meanwhile: "rm -r d; rm g",
			check:     "! test -e d; ! test -e g",
		},
		{
			name:      "the host removed what the run changed",
			setup:     "echo 1 > f",
			run:       "echo run >> f",
			meanwhile: "rm f",
			want:      Report{Conflicts: []Conflict{{Path: "f", KeptAs: "f.conflict-r1", Gone: true}}},
			check:     "! test -e f; grep -qx run f.conflict-r1",
		},
		{
			name:      "a rename while the host works beside it",
			setup:     "echo 1 > a",
			run:       "mv a b",
			meanwhile: "echo x > other",
			want:      Report{Added: []string{"b"}, Deleted: []string{"a"}},
			check:     "grep -qx 1 b; ! test -e a",
		},
		{
			name:      "both made a directory",
			run:       "mkdir build; echo run > build/y; echo run > build/both",
			meanwhile: "mkdir build; echo host > build/x; echo host > build/both",
			want:      Report{Added: []string{"build/y"}, Conflicts: []Conflict{{Path: "build/both", KeptAs: "build/both.conflict-r1"}}},
			check:     "grep -qx host build/x; grep -qx run build/y; grep -qx host build/both; grep -qx run build/both.conflict-r1",
		},
		{
			name:      "the host made a directory of a file and a link of a directory",
			setup:     "echo 1 > f; mkdir d; echo 1 > d/x; mkdir $BASE/victim; echo safe > $BASE/victim/x",
			run:       "echo run > f; echo run > d/x; echo run > d/y",
			meanwhile: "rm f; mkdir f; echo host > f/z; rm -r d; ln -s $BASE/victim d",
			want:      Report{Conflicts: []Conflict{{Path: "d", KeptAs: "d.conflict-r1"}, {Path: "f", KeptAs: "f.conflict-r1"}}},
			check: `grep -qx host f/z; grep -qx run f.conflict-r1; test -L d; grep -qx safe $BASE/victim/x;
				test "$(ls $BASE/victim)" = x; grep -qx run d.conflict-r1/y`,
		},
		{
			name:      "links land as links and are not followed",
			setup:     "mkdir d $BASE/victim; echo x > d/x; echo safe > $BASE/victim/f; ln -s a l",
			run:       `rm -r d; ln -s /nowhere/none d; ln -s nowhere dangling; ln -sfn b l; mkdir e; echo 1 > e/f`,
			meanwhile: "ln -s $BASE/victim e",
			want: Report{
				Added: []string{"d", "dangling"}, Modified: []string{"l"}, Deleted: []string{"d/x"},
				Conflicts: []Conflict{{Path: "e", KeptAs: "e.conflict-r1"}},
			},
			check: `test -L d; test -L dangling; test "$(readlink l)" = b; test "$(ls $BASE/victim)" = f; grep -qx 1 e.conflict-r1/f`,
		},
		{
			name:  "modes, times and names",
			setup: "printf 'hi\n' > run.sh; chmod 755 run.sh; echo o > other; chmod 644 other; echo t > t; mkdir dm; echo ro > ro.txt; chmod 444 ro.txt",
			run: `sed -i s/hi/ho/ run.sh; (umask 077; echo x > private); chmod +x other; echo s > s; chmod 4755 s; echo g > g; chmod 2711 g
				mkdir ro; echo 1 > ro/x; mkdir ro/deep; chmod 555 ro/deep ro; chmod 700 dm; echo r2 > r2; mv -f r2 ro.txt
				touch -d '2020-02-02 02:02:02.123456789' t new; chmod 000 private; mkdir shut; echo x > shut/x; chmod 0 shut
				touch -- 'a
b' '-rf' '"q"' "$(printf '\377\376')" A a`,
			want: Report{
				Added: []string{
					"\"q\"", "-rf", "A", "a", "a\nb", "g", "new", "private", "ro/deep", "ro/x", "s", "shut/x", "\xff\xfe",
				},
				Modified: []string{"dm", "other", "ro.txt", "run.sh", "t"},
				Withheld: []Withheld{{"g", "setgid bit removed"}, {"s", "setuid bit removed"}},
			},
			check: `test $(stat -c %a run.sh other private s g ro ro/deep dm shut | tr '\n' ,) = 755,755,0,755,711,555,555,700,0,
				stat -c %y t | grep -q 02.123456789; stat -c %y new | grep -q 02.123456789; test -e ./-rf; test -e A; test -e "$(printf '\377\376')"
				grep -qx r2 ro.txt`,
		},
		{
			name:  "files in a directory that is read-only",
			setup: "mkdir ro; echo 1 > ro/a; echo 1 > ro/b; chmod 555 ro",
			run:   "echo 2 > ro/a; chmod 755 ro; rm ro/b; echo c > ro/c; chmod 555 ro",
			want:  Report{Added: []string{"ro/c"}, Modified: []string{"ro/a"}, Deleted: []string{"ro/b"}},
			check: `test $(stat -c %a ro) = 555; grep -qx 2 ro/a; test "$(ls ro)" = "a
c"`,
		},
		{
			name:  "special files are withheld",
			setup: "echo 1 > f; mkfifo pipe",
			run:   "mkfifo p; rm f; mkfifo f; mkdir d; mkfifo d/p; echo 1 > d/x; mkdir only; mkfifo only/p; rm pipe",
			want: Report{
				Added: []string{"d/x"}, Deleted: []string{"pipe"},
				Withheld: []Withheld{{"d/p", "FIFO"}, {"f", "FIFO"}, {"only/p", "FIFO"}, {"p", "FIFO"}},
			},
			check: "grep -qx 1 f; ! test -e p; ! test -e d/p; ! test -e only; ! test -e pipe",
		},
		{
			name:  "ignored",
			setup: "mkdir -p pkg/__pycache__; echo 1 > pkg/a.py; echo 1 > pkg/__pycache__/a.pyc; mkdir -p old/__pycache__; echo > old/__pycache__/x; echo 1 > old/y",
			run:   "echo 2 > pkg/__pycache__/a.pyc; mkdir -p new/__pycache__ new2; echo > new/__pycache__/x; mkdir new2/__pycache__; echo > new2/__pycache__/x; echo > new2/y; rm -r old",
			want:  Report{Added: []string{"new2/y"}, Deleted: []string{"old/y"}},
			check: `grep -qx 1 pkg/__pycache__/a.pyc; ! test -e new; test "$(ls new2)" = y; ! test -e old`,
		},
		{
			// Moving from below marks the directory that it goes to.
			name:  "ignored and protected in a new directory, with marks",
			setup: "mkdir -p pkg/__pycache__ vs/.vscode/sub; echo 1 > pkg/__pycache__/a.pyc; echo 1 > vs/.vscode/t.json; echo 1 > vs/.vscode/sub/u.json",
			run: `mkdir -p lib/deep/__pycache__ other/.vscode/sub; mv pkg/__pycache__/a.pyc lib/deep/__pycache__/; echo 1 > lib/deep/a.py
				mv vs/.vscode/t.json other/.vscode/; mv vs/.vscode/sub/u.json other/.vscode/sub/; echo 1 > other/x`,
			want: Report{
				Added: []string{"lib/deep/a.py", "other/x"},
				Withheld: []Withheld{
					{"other/.vscode/sub", "protected"},
					{"other/.vscode/t.json", "protected"},
					{"vs/.vscode/sub/u.json", "protected"},
					{"vs/.vscode/t.json", "protected"},
				},
			},
			check: `test "$(ls -A lib/deep)" = a.py; test "$(ls -A other)" = x; test -e pkg/__pycache__/a.pyc; test -e vs/.vscode/sub/u.json; test -e vs/.vscode/t.json`,
		},
		{
			name: "protected",
			setup: `mkdir -p .git/hooks .git/objects .git/refs .vscode vend/objects vend/refs; echo ref > .git/HEAD; echo c > .git/config; echo 1 > .vscode/keep
				echo c > vend/config; touch .envrc; mkdir data; echo 1 > data/config`,
			run: `echo evil > .git/hooks/pre-commit; echo evil > .git/config; echo new > .git/refs/config-branch; mkdir -p .vscode sub/.GIT/hooks
				echo '{}' > .vscode/tasks.json; echo '{}' > .mcp.json; echo x > sub/.GIT/hooks/post-checkout; echo ok > ok.txt
				echo ref > vend/HEAD; echo p > .airlock.toml; mkdir deep; echo x > deep/.Envrc; echo x > .envrc; ln -s data .claude; ln -s x .idea
				mkdir -p bare/objects bare/refs bare/hooks; echo r > bare/HEAD; echo c > bare/config; echo h > bare/hooks/h; echo o > bare/objects/o
				mkdir -p wt; echo r > wt/HEAD; echo ../x > wt/commondir; echo 2 > data/config; echo gitdir: x > data/.git; echo x > a.code-workspace
				mkdir .airlock-land-x; echo > .airlock-land-x/y; rm -r .vscode; mkdir -p .claude2 p2/.claude; echo > p2/.claude/settings.local.json; echo > p2/.claude/notes`,
			want: Report{
				Added:    []string{".git/refs/config-branch", "bare/HEAD", "bare/objects/o", "bare/refs", "ok.txt", "p2/.claude/notes", "wt/HEAD", ".claude2"},
				Modified: []string{"data/config"},
				Withheld: []Withheld{
					{".airlock-land-x", "reserved name"},
					{".airlock.toml", "protected"},
					{".claude", "protected"},
					{".envrc", "protected"},
					{".git/config", "protected: line 1: a variable outside of a section"},
					{".git/hooks/pre-commit", "protected"},
					{".idea", "protected"},
					{".mcp.json", "protected"},
					{".vscode/keep", "protected"},
					{"a.code-workspace", "protected"},
					{"bare/config", "protected: line 1: a variable outside of a section"},
					{"bare/hooks", "protected"},
					{"data/.git", "protected"},
					{"deep/.Envrc", "protected"},
					{"p2/.claude/settings.local.json", "protected"},
					{"sub/.GIT/hooks", "protected"},
					{"vend/HEAD", "protected"},
					{"wt/commondir", "protected"},
				},
			},
			check: `! test -e .git/hooks/pre-commit; grep -qx c .git/config; test -e .vscode/keep; ! test -e sub; ! test -e deep; ! test -e .mcp.json
				test "$(ls bare)" = "HEAD
objects
refs"; ! test -e vend/HEAD; ! test -L .claude`,
		},
		{
			name:      "a git directory that changed lands as nothing",
			setup:     "mkdir -p .git/objects .git/refs; echo a > .git/HEAD; echo i > .git/index; echo 1 > f",
			run:       "echo run > .git/index; echo o > .git/objects/o; echo 2 > f",
			meanwhile: "echo host > .git/index",
			want:      Report{Modified: []string{"f"}, Withheld: []Withheld{{".git", whyTorn}}},
			check:     "grep -qx host .git/index; ! test -e .git/objects/o; ! ls .git/*conflict*",
		},
		{
			name:  "hooks that are made a git directory are still hooks",
			setup: "mkdir -p .git/hooks sub/.git .vscode; echo 1 > .vscode/a",
			run: `for d in .git/hooks sub/.git/hooks; do mkdir -p $d/objects $d/refs; echo r > $d/HEAD; echo evil > $d/pre-commit; done
				mkdir sub/.git/commondir; chmod 700 .git/hooks`,
			want: Report{Withheld: []Withheld{
				{".git/hooks", "protected"},
				{".git/hooks/HEAD", "protected"},
				{".git/hooks/objects", "protected"},
				{".git/hooks/pre-commit", "protected"},
				{".git/hooks/refs", "protected"},
				{"sub/.git/commondir", "protected"},
				{"sub/.git/hooks", "protected"},
			}},
			check: `test -z "$(ls .git/hooks)"; test -z "$(ls sub/.git)"; test "$(stat -c %a .git/hooks)" = 755`,
		},
		{
			name:  "the workspace becomes a git directory",
			setup: "mkdir src; echo 1 > src/config",
			run:   "mkdir objects refs hooks; echo r > HEAD; echo evil > config; echo evil > hooks/pre-commit; echo 2 > src/config",
			want: Report{
				Added: []string{"HEAD", "objects", "refs"}, Modified: []string{"src/config"},
				Withheld: []Withheld{{"config", "protected: line 1: a variable outside of a section"}, {"hooks", "protected"}},
			},
			check: "! test -e config; ! test -e hooks; grep -qx 2 src/config",
		},
		{
			name:  "a git directory with hooks is not half removed",
			setup: "mkdir -p .git/objects .git/refs .git/hooks; echo a > .git/HEAD; echo h > .git/hooks/h; mkdir -p sub/.git/objects sub/.git/refs; echo a > sub/.git/HEAD",
			run:   "rm -r .git sub",
			want:  Report{Deleted: []string{"sub/.git/HEAD", "sub/.git/objects", "sub/.git/refs"}, Withheld: []Withheld{{".git", "protected"}}},
			check: "test -e .git/HEAD; ! test -e sub",
		},
		{
			name:  "hard links of the run, and of the host",
			setup: "echo 1 > f; ln f g",
			run:   "echo a > a; ln a b; mkdir d; ln a d/c; echo 2 > f; echo 3 > g",
			want:  Report{Added: []string{"a", "b", "d/c"}, Modified: []string{"f", "g"}},
			check: "test $(stat -c %h a) = 3; test a -ef d/c; grep -qx 2 f; grep -qx 3 g",
		},
		{
			name:  "links of a file that nobody may read",
			run:   "echo 1 > .envrc; ln .envrc a; chmod 0 a",
			want:  Report{Added: []string{"a"}, Withheld: []Withheld{{".envrc", "protected"}}},
			check: "test $(stat -c %a a) = 0; ! test -e .envrc",
		},
		{
			name:      "the mode of a directory against work in it",
			setup:     "mkdir d e; chmod 755 d e",
			run:       "chmod 700 d e",
			meanwhile: "echo 1 > d/x",
			want:      Report{Modified: []string{"e"}, Conflicts: []Conflict{{Path: "d"}}},
			check:     "test $(stat -c %a d) = 755; test $(stat -c %a e) = 700",
		},
		{
			name:  "names at the limit",
			setup: `echo 1 > "$(printf 'é%.0s' $(seq 127))"`,
			run:   `echo run > "$(printf 'é%.0s' $(seq 127))"`, meanwhile: `echo host > "$(printf 'é%.0s' $(seq 127))"`,
			want: Report{Conflicts: []Conflict{{Path: strings.Repeat("é", 127), KeptAs: strings.Repeat("é", 121) + ".conflict-r1"}}},
		},
		{
			name:  "the mode of the workspace",
			setup: "chmod 755 .; echo 1 > a",
			run:   "chmod 775 .; echo 2 > a",
			want:  Report{Modified: []string{".", "a"}},
			check: "test $(stat -c %a .) = 775",
		},
		{
			name:  "a workspace that nobody could use",
			setup: "chmod 755 .; echo 1 > a",
			run:   "echo 2 > a; chmod 0 .",
			want:  Report{Modified: []string{"a"}, Withheld: []Withheld{{".", "shuts the workspace's owner out"}}},
			check: "test $(stat -c %a .) = 755; grep -qx 2 a",
		},
		{
			name: "a tree deeper than a path can be",
			run: `d=$(printf 'd%.0s' $(seq 200)); i=0; mkdir ok deep; echo 1 > ok/f; cd deep
				while test $i -lt 60; do mkdir $d; cd -P $d 2>/dev/null || cd $d; i=$((i+1)); done; echo x > bottom`,
			want: Report{Added: []string{"ok/f"}, Withheld: []Withheld{{strings.TrimSuffix("deep/"+strings.Repeat(strings.Repeat("d", 200)+"/", 21), "/"), "path too long"}}},
		},
	} {
		for _, review := range []string{"", "before", "after"} {
			if review == "before" && (tt.meanwhile == "" || !*everyReview) || review != "" && tt.meanwhile == "" && !*everyReview {
				continue
			}
			t.Run(strings.TrimSuffix(tt.name+"/"+review, "/"), func(t *testing.T) {
				f := onDisk(t, tt.setup, func(c *Config) {
					if tt.discard {
						c.OnConflict = "discard"
					}
				})
				f.review = review
				got := f.landed(tt.run, tt.meanwhile)
				want := tt.want
				want.Landed = !tt.discard
				if review != "" && tt.discard {
					want.Discarded, want.Waiting = 0, "r1"
				}
				if review != "" && tt.reviewed != nil {
					want.Conflicts = tt.reviewed
				}
				want.sort()
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("report (-want +got):\n%s", diff)
				}
				f.host(tt.check)
			})
		}
	}
}

// TestRedirect: attributes that this mount cannot have made fail the run.
func TestRedirect(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	txn := f.begin()
	run(t, txn.Layer(), "mkdir d; echo 2 > a")
	setXattr(t, filepath.Join(txn.Layer().Upper, "d"), "user.overlay.redirect", "/etc")
	report, err := txn.Land(context.Background())
	if err == nil || report.Landed {
		t.Fatalf("landed: %+v, %v", report, err)
	}
	f.host("grep -qx 1 a; ! test -e d")
}
