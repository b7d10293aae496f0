package main

import (
	"path/filepath"

	"airlock/internal/gitconfig"
	"airlock/sandbox"
)

// withoutTerminal is set for every run: nobody sits at it, so that what would ask or page must not wait. An editor
// fails, rather than saving what nobody has looked at.
var withoutTerminal = []string{
	"DEBIAN_FRONTEND=noninteractive",
	"EDITOR=false",
	"GIT_EDITOR=echo 'a run has no editor: give the message with -m, or use --no-edit' >&2; false",
	"GIT_PAGER=cat",
	"GIT_SEQUENCE_EDITOR=echo 'a run has no editor: git rebase -i needs GIT_SEQUENCE_EDITOR' >&2; false",
	"GIT_TERMINAL_PROMPT=0",
	"MANPAGER=cat",
	"PAGER=cat",
	"PIP_NO_INPUT=1",
	"SYSTEMD_PAGER=cat",
	"VISUAL=false",
}

// gitSystemFile is the configuration of git that a run sees as the system's. The host's holds credential helpers
// and the like, and is not shown.
const gitSystemFile = "/etc/gitconfig"

// gitForRuns gives what git needs in a run: who makes commits, from the person's own configuration and nothing
// else of it, and that the workspace may be used whoever owns it. What the repository says goes before it.
func gitForRuns(p places, dir string, environ []string) (sandbox.Mount, string) {
	home := gitUser(p, dir, environ).Home
	files := gitconfig.OfUser(home, func(name string) string { return lookup(environ, name) })
	text := gitconfig.IdentityOf(home, filepath.Join(dir, ".git"), files...).File()
	text += "[safe]\n\tdirectory = *\n"
	return sandbox.Mount{Kind: sandbox.MountFile, Target: gitSystemFile, Content: []byte(text)}, "GIT_CONFIG_SYSTEM=" + gitSystemFile
}
