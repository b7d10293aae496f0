package overlay

import (
	"strings"
	"testing"
)

func TestProtected(t *testing.T) {
	c := Defaults()
	c.Protect = []string{"secret", "/top/**", "a/b.key"}
	f, err := newFilter(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		kind kind
		gits []string
		yes  string
		no   string
	}{
		{
			kind: regular,
			yes: `.airlock.toml sub/.AIRLOCK.toml .gitmodules .envrc .mcp.json .vscode/tasks.json x/.VSCode/y/z .idea/w .cursor/a .codex/a
				.agents/a .gemini/a .zed/a .devcontainer/a my.code-workspace .claude/settings.json .claude/settings.local.json .claude/hooks/h
				.claude/commands/c .claude/agents/a .bashrc sub/.profile .zshrc .git sub/.GIT SECRET x/secret secret/y top/x x/a/b.key .config/fish/x`,
			no: "a .vscode .gitignore .github/workflows/x .claude/notes airlock.toml x/top/x code-workspace b.key .config .config/x .claude",
		},
		{kind: symlink, yes: ".vscode .claude x/.Idea .git .config/fish .config top a", no: "vscode b x/top"},
		{kind: directory, yes: ".claude/hooks/x secret .bashrc", no: ".vscode .git .claude top .git/refs"},
		{kind: regular, gits: []string{""}, yes: "hooks/pre-commit config Config.worktree", no: "HEAD refs/hooks/x src/config"},
		{kind: regular, gits: []string{".git", ".git/hooks"}, yes: ".git/hooks/pre-commit", no: ".git/HEAD"},
		{
			kind: regular, gits: []string{".git"},
			yes: ".git/config .git/hooks/pre-commit .git/Hooks .git/config.worktree .git/commondir .git/gitdir .git/worktrees/x/gitdir .git/worktrees/x/config.worktree",
			no:  ".git/HEAD .git/index .git/refs/heads/config .git/refs/hooks/x .git/worktrees/x/HEAD .git/objects/ab/cd .git/worktrees/config",
		},
	} {
		for want, list := range map[bool]string{true: tt.yes, false: tt.no} {
			for _, p := range strings.Fields(list) {
				if got := f.protected(p, tt.kind, tt.gits); got != want {
					t.Errorf("kind %d %q in git directories %q: %v", tt.kind, p, tt.gits, got)
				}
			}
		}
	}
}

func TestIsGitDir(t *testing.T) {
	for _, tt := range []struct {
		name, holds string
		want        bool
	}{
		{".git", "", true},
		{".GIT", "", true},
		{"x", "HEAD objects refs", true},
		{"x", "HEAD commondir", true},
		{"x", "objects refs config", false},
		{"x", "HEAD objects", false},
	} {
		got := isGitDir(tt.name, func(name string) bool { return strings.Contains(" "+tt.holds+" ", " "+name+" ") })
		if got != tt.want {
			t.Errorf("%s with %s: %v", tt.name, tt.holds, got)
		}
	}
}
