package gitconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentityOf(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		"config":    "[user]\n\tname = From XDG\n\temail = xdg@example.com\n",
		"gitconfig": "[user]\nemail = \"a \\\"b\\\" <x>@example.com\"\n[include]\npath = more\n[includeIf \"gitdir:~/work/\"]\npath = ~/work-id\n[includeIf \"gitdir/i:~/OTHER/\"]\npath = other-id\n[includeIf \"onbranch:main\"]\npath = never\n[credential]\nhelper = store\n",
		"more":      "[user]\nname = Ann Example\n[include]\npath = more\n",
		"work-id":   "[user]\nemail = ann@work.example\n",
		"other-id":  "[user]\nemail = ann@other.example\n",
		"never":     "[user]\nname = never\n",
		"broken":    "[user\nname = broken\n",
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{filepath.Join(home, "missing"), filepath.Join(home, "config"), filepath.Join(home, "gitconfig"), filepath.Join(home, "broken")}
	for dir, want := range map[string]Identity{
		"/src/x/.git":                          {"Ann Example", `a "b" <x>@example.com`},
		filepath.Join(home, "work/x/.git"):     {"Ann Example", "ann@work.example"},
		filepath.Join(home, "workshop/.git"):   {"Ann Example", `a "b" <x>@example.com`},
		filepath.Join(home, "other/deep/.git"): {"Ann Example", "ann@other.example"},
	} {
		if got := IdentityOf(home, dir, files...); got != want {
			t.Errorf("%s: %+v, want %+v", dir, got, want)
		}
	}
	if got := IdentityOf(home, "/x/.git", files[:1]...); got != (Identity{}) || got.File() != "" {
		t.Errorf("nothing says so: %+v, %q", got, got.File())
	}
}

// What File writes, git and Parse read as what it was.
func TestIdentityFile(t *testing.T) {
	id := Identity{Name: `Ann "Q" O'Example \ ; # ü`, Email: " ann@example.com"}
	name := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(name, []byte(id.File()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := IdentityOf("/", "/", name); got != id {
		t.Errorf("got %+v, want %+v", got, id)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here to ask")
	}
	out, err := exec.Command("git", "config", "-f", name, "user.name").Output()
	if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != id.Name {
		t.Errorf("git reads %q, %v", got, err)
	}
}
