package overlay

// Layer is where one transaction lives, as plain paths: Lower is the workspace itself, Upper and
// Work are private to the transaction and lie on the same filesystem.
type Layer struct {
	Lower, Upper, Work string
}

// Report says what became of a transaction. Paths are relative to the workspace, in the bytes that
// the filesystem has; Quote makes them printable. A directory counts as added or deleted only if it
// is empty and was not emptied by withholding.
type Report struct {
	Landed    bool
	Added     []string
	Modified  []string
	Deleted   []string
	Conflicts []Conflict
	Withheld  []Withheld
	Discarded int      // changes that were thrown away
	Notes     []string // further facts a person needs, each a sentence
}

// Conflict is a path that someone else changed while the run was going. The host's version stayed.
type Conflict struct {
	Path   string
	KeptAs string // where the run's version is; "" if the run had deleted the path
}

// Withheld is a change that did not land although the run did.
type Withheld struct {
	Path string
	Why  string // "protected", "socket", "set-user-id bit removed", …
}
