package gitconfig

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFollow(t *testing.T) {
	home := t.TempDir()
	write := func(path, text string) string {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	main := write(".gitconfig", "[core]\nhooksPath = ~/hooks\n[include]\npath = more\n[includeIf \"gitdir:/x\"]\npath = ~/x/cond\n")
	more := write("more", "[include]\npath = .gitconfig\npath = missing\n[core]\nhookspath = .githooks\n")
	// A file that git reads and the parser does not take.
	cond := write("x/cond", "[core]\r\n  HooksPath = \"/abs/hooks\" ; c\r\n[include] path = deep\r\n")
	if err := os.Symlink("/dev/zero", filepath.Join(home, "x/deep")); err != nil {
		t.Fatal(err)
	}
	got := Follow(home, main)
	want := Obeyed{
		Files: []string{main, more, cond, filepath.Join(home, "missing"), filepath.Join(home, "x/deep")},
		Hooks: []string{filepath.Join(home, "hooks"), ".githooks", "/abs/hooks"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOfRepository(t *testing.T) {
	top := t.TempDir()
	if got, want := OfRepository(top), OfGitDirectory(filepath.Join(top, ".git")); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	os.MkdirAll(filepath.Join(top, "main/worktrees/x"), 0o755)
	os.WriteFile(filepath.Join(top, "main/worktrees/x/commondir"), []byte("../..\n"), 0o644)
	os.WriteFile(filepath.Join(top, ".git"), []byte("gitdir: main/worktrees/x\n"), 0o644)
	want := slices.Concat(OfGitDirectory(filepath.Join(top, "main/worktrees/x")), OfGitDirectory(filepath.Join(top, "main")))
	if got := OfRepository(top); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
