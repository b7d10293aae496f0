package gitconfig

import (
	"strings"

	"airlock/internal/pattern"
)

// Addresses are taken by what they look like, not refused by it: whatever is not plainly an https or ssh
// address could be a path, a transport helper ("ext::sh -c …"), or an option to ssh.
var (
	httpsAddress = pattern.Lazy(`^https://(` + userinfo + `@)?` + host + `(:[0-9]{1,5})?(/[\x21-\x7e]*)?$`)
	sshAddress   = pattern.Lazy(`^ssh://(` + user + `@)?` + host + `(:[0-9]{1,5})?/[\x21-\x7e]+$`)
	scpAddress   = pattern.Lazy(`^(` + user + `@)?[A-Za-z0-9][A-Za-z0-9._-]+:[A-Za-z0-9~/_.][\x21-\x7e]*$`)
	remoteName   = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9._/+-]*$`)
)

const (
	user     = `[A-Za-z0-9_][A-Za-z0-9._+~-]*`
	userinfo = `[A-Za-z0-9_][A-Za-z0-9._+~%:-]*`
	host     = `([A-Za-z0-9]([A-Za-z0-9._-]*)|\[[0-9A-Fa-f:]+\])`
)

// address reports whether git takes s for an address of https or of ssh, and for nothing else.
func address(s string) bool {
	if len(s) > 2048 {
		return false
	}
	if strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "ssh://") {
		return httpsAddress().MatchString(s) || sshAddress().MatchString(s)
	}
	return !strings.Contains(s, "::") && !strings.Contains(s, "://") && scpAddress().MatchString(s)
}

// plainName reports whether git takes the name of a remote for nothing else, and for a part of a ref.
func plainName(s string) bool {
	return remoteName().MatchString(s) && ValidRef("refs/remotes/"+s)
}

// fetches reports whether a refspec only ever writes to the refs that belong to the remote.
func fetches(remote, refspec string) bool {
	from, to, found := strings.Cut(strings.TrimPrefix(refspec, "+"), ":")
	ours := "refs/remotes/" + remote + "/"
	if !found || !strings.HasPrefix(from, "refs/") || !strings.HasPrefix(to, ours) {
		return false
	}
	// At most one star on each side stands for the rest of a name.
	for _, side := range []string{from, to} {
		if strings.Count(side, "*") > 1 || !ValidRef(strings.Replace(side, "*", "x", 1)) {
			return false
		}
	}
	return strings.Contains(from, "*") == strings.Contains(to, "*")
}

// ValidRef reports whether name is one that git gives to a ref: git check-ref-format says so.
func ValidRef(name string) bool {
	if !strings.Contains(name, "/") || strings.HasSuffix(name, ".") || strings.Contains(name, "..") || strings.Contains(name, "@{") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return false
		}
	}
	return true
}
