package overlay

// Layer is where one transaction lives, as plain paths: Lower is the workspace itself, Upper and
// Work are private to the transaction and lie on the same filesystem.
//
// Upper is prepared (its root has the workspace's mode and, as far as permitted, owner, because the
// root of the merged view shows them) and must be mounted with the userxattr option.
type Layer struct {
	Lower, Upper, Work string
}

// Report says what became of a transaction. Paths are relative to the workspace, in the bytes that
// the filesystem has; Quote makes them printable. A directory counts as added or deleted only if it
// is empty and was not emptied by withholding. Every list is sorted by path.
type Report struct {
	Landed    bool
	Added     []string
	Modified  []string
	Deleted   []string
	Conflicts []Conflict
	Withheld  []Withheld
	Discarded int      // changes that were thrown away
	Reason    string   // why they were, where Landed is false: "timeout", "conflict: a.txt changed meanwhile"
	Notes     []string // further facts a person needs, each a sentence
}

// Conflict is a path that someone else changed while the run was going. The host's version stayed.
type Conflict struct {
	Path   string
	KeptAs string // where the run's version is; "" if the run had deleted the path, or nothing landed
}

// Withheld is a change that did not land although the run did.
type Withheld struct {
	Path string
	Why  string // "protected", "socket", "setuid bit removed", …
}
