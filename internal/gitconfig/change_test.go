package gitconfig

import (
	"strings"
	"testing"
)

const original = `[core]
	bare = false
	hooksPath = .hooks
[include]
	path = more
[remote "origin"]
	url = https://example.com/a.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
	remote = origin
	merge = refs/heads/main
	pushRemote = origin
[user]
	name = Person
`

// TestChange adds lines to the configuration above, or replaces some of it.
func TestChange(t *testing.T) {
	remote := func(lines string) string {
		return "[remote \"new\"]\nurl = https://example.com/b.git\nfetch = +refs/heads/*:refs/remotes/new/*\n" + lines
	}
	for _, tt := range []struct{ add, old, new, refused string }{
		{},
		{add: "# a comment\n[core]\n[user]\nemail = a@b\n"},
		{old: "name = Person", new: "name = Someone Else"},
		{old: "name = Person", new: ""},
		{old: "name = Person", new: "name", refused: "user.name has no value"},
		{add: "[user]\nsigningKey = x\n", refused: "user.signingkey was changed"},
		{add: "[branch \"x\"]\nremote = origin\nmerge = refs/heads/x\nrebase = true\ndescription = \"a\\nb\"\n"},
		{add: "[branch \"x\"]\nremote = .\nmerge = refs/heads/main\n"},
		{add: "[branch \"x\"]\nremote = none\n", refused: "branch.x.remote names no remote"},
		{add: "[branch \"x\"]\nremote = ext::sh -c x\n", refused: "branch.x.remote names no remote"},
		{add: "[branch \"x\"]\nremote = /tmp/evil\n", refused: "branch.x.remote names no remote"},
		{add: "[branch \"x\"]\nremote\n", refused: "branch.x.remote has no value"},
		{add: "[branch \"x\"]\nmerge = HEAD\n", refused: "branch.x.merge is not the name of a ref"},
		{add: "[branch \"x\"]\nmerge = --upload-pack=x\n", refused: "branch.x.merge is not the name of a ref"},
		{add: "[branch \"x\"]\nmergeOptions = --strategy=x\n", refused: "branch.x.mergeoptions was changed"},
		{add: "[branch \"x\"]\npushRemote = origin\n", refused: "branch.x.pushremote was changed"},
		{add: "[branch \"x\"]\nrebase = exec\n", refused: "branch.x.rebase has a value of its own"},
		{add: remote(""), refused: ""},
		{add: remote("[branch \"x\"]\nremote = new\n")},
		{add: remote(""), old: "remote = origin", new: "remote = new", refused: "branch.main.remote is where the next push goes"},
		{old: "	pushRemote = origin\n", new: "", refused: "branch.main.pushremote was changed"},
		{old: original[strings.Index(original, "[branch"):strings.Index(original, "[user")], new: ""}, // git branch -d
		{old: `[branch "main"]`, new: `[branch "trunk"]`},                                             // git branch -m
		{old: "merge = refs/heads/main", new: "merge = refs/heads/x"},
		{old: "url = https://example.com/a.git", new: "url = https://example.com/b.git", refused: "remote.origin.url was changed"},
		{old: original[strings.Index(original, "[remote"):strings.Index(original, "[branch")], new: "", refused: "remote.origin.url was removed"},
		{add: "[remote \"origin\"]\npushurl = https://example.com/b\n", refused: "remote.origin.pushurl was changed"},
		{add: "[remote \"origin\"]\nurl = https://example.com/b\n", refused: "remote.origin.url was changed"},
		{add: "[remote \"Origin\"]\nurl = https://example.com/b\n"},
		{add: remote("pushurl = https://example.com/b\n"), refused: "has pushurl"},
		{add: remote("uploadpack = x\n"), refused: "has uploadpack"},
		{add: remote("receivepack = x\n"), refused: "has receivepack"},
		{add: remote("proxy = x\n"), refused: "has proxy"},
		{add: remote("vcs = x\n"), refused: "has vcs"},
		{add: remote("mirror = true\n"), refused: "has mirror"},
		{add: remote("url = https://example.com/c\n"), refused: "has 2 addresses"},
		{add: "[remote \"new\"]\nfetch = refs/heads/*:refs/remotes/new/*\n", refused: "has 0 addresses"},
		{add: "[remote \"ext::sh -c x\"]\nurl = https://example.com/b\n", refused: "has a name that git could take for an address"},
		{add: "[remote \"-x\"]\nurl = https://example.com/b\n", refused: "has a name that git could take for an address"},
		{add: "[remote \"../x\"]\nurl = https://example.com/b\n", refused: "has a name that git could take for an address"},
		{add: remote("fetch = +refs/heads/*:refs/heads/*\n"), refused: "fetches to other refs than its own"},
		{add: remote("fetch = +refs/heads/*:refs/remotes/origin/*\n"), refused: "fetches to other refs than its own"},
		{add: remote("fetch = --upload-pack=x:refs/remotes/new/x\n"), refused: "fetches to other refs than its own"},
		{add: "[core]\nfsmonitor = x\n", refused: "core.fsmonitor was changed"},
		{add: "[alias]\nst = !x\n", refused: "alias.st was changed"},
		{add: "[url \"ext::x\"]\ninsteadOf = https://\n", refused: "url.ext::x.insteadof was changed"},
		{add: "[includeIf \"gitdir:/\"]\npath = x\n", refused: "includeif.gitdir:/.path was changed"},
		{add: "[filter \"x\"]\nclean = x\n", refused: "filter.x.clean was changed"},
		{add: "[core]\nbare = false\n", refused: "core.bare was changed"},
		{old: "bare = false", new: "bare = true", refused: "core.bare was changed"},
		// What an include sets wins or loses by where it stands.
		{old: "[core]\n\tbare = false\n\thooksPath = .hooks\n[include]\n\tpath = more\n", new: "[include]\n\tpath = more\n[core]\n\tbare = false\n\thooksPath = .hooks\n", refused: "include.path was changed"},
	} {
		if tt.old != "" && !strings.Contains(original, tt.old) {
			t.Fatalf("%q is not in the configuration", tt.old)
		}
		before, err := Parse([]byte(original))
		if err != nil {
			t.Fatal(err)
		}
		after, err := Parse([]byte(strings.Replace(original, tt.old, tt.new, 1) + tt.add))
		if err != nil {
			t.Fatalf("%+v: %v", tt, err)
		}
		err = Change{Before: before, After: after}.Refused()
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%+v\ngot %v", tt, err)
		}
	}
}

// TestNew: what git init and git clone write is allowed in a git directory that is new, and only there.
func TestNew(t *testing.T) {
	const wrote = "[core]\nrepositoryformatversion = 1\nfilemode = true\nbare = true\nlogallrefupdates = true\n[extensions]\nobjectformat = sha256\n"
	const cloned = "[remote \"origin\"]\nurl = git@example.com:a/b\nfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\nremote = origin\nmerge = refs/heads/main\n"
	for _, tt := range []struct {
		text string
		old  bool
		ok   bool
	}{
		{text: wrote, ok: true},
		{text: wrote + cloned, ok: true},
		{text: wrote, old: true},
		{text: cloned, old: true, ok: true},
		{text: wrote + "[core]\nworktree = /home\n"},
		{text: wrote + "[core]\nfilemode\n"},
		{text: wrote + "[core \"x\"]\nbare = true\n"},
		{text: wrote + "[remote \"origin\"]\nurl = /a/b\n"},
		{text: wrote + "[core]\nfsmonitor = true\n"},
		{text: wrote + "[extensions]\nworktreeConfig = true\n"},
		{text: wrote + "[submodule \"x\"]\nupdate = !x\n"},
	} {
		after, err := Parse([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := (Change{After: after, New: !tt.old}).Refused(); (err == nil) != tt.ok {
			t.Errorf("%q, old: %v: %v", tt.text, tt.old, err)
		}
	}
}

func TestAddress(t *testing.T) {
	for want, list := range map[bool][]string{
		true: {
			"https://example.com/a.git", "https://u:p@example.com:8443/a", "https://[::1]/x", "ssh://git@example.com:22/a/b.git", "ssh://h/~u/x", "git@example.com:a/b.git",
			"example.com:/srv/x", "host-1:~u/x",
		},
		false: {
			"", "http://example.com/a", "git://example.com/a", "file:///x", "/x", "../x", "x", "ext::sh -c x", "https::https://x/y", "host::path", "git@host::x", "-oProxyCommand=x:y",
			"ssh://-oProxyCommand=x/y", "ssh://u@-h/y", "-u@host:x", "ssh://%2DoProxyCommand/x", "a/b:c", "c:x", "https://", "https:///x", "https://-x/y", "HTTPS://x/y", "ssh://h", "host:-x",
			"https://x/\nhttps://y", "git@host:a\nb", "git@host:a b", "fd::3", "ssh+git://h/x", "h:x://y", "https://" + strings.Repeat("x", 3000), "https://exämple.com/x",
		},
	} {
		for _, s := range list {
			if address(s) != want {
				t.Errorf("%q: %v", s, !want)
			}
		}
	}
}
