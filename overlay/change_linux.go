package overlay

// changeKind is what a run did to a path, seen from the workspace.
type changeKind uint8

const (
	put     changeKind = iota // the layer has something that the workspace does not have like that
	remove                    // the workspace has something that the run removed
	setMode                   // a directory of both, with another mode
)

// change is one difference between layer and workspace, judged: it lands, or it is in conflict.
type change struct {
	kind changeKind
	path string
	run  inode // in the layer; absent for remove
	host inode // in the workspace, as it was judged

	// conflict is set where someone else changed the path meanwhile.
	conflict bool
	// maybeVanished is set where the layer holds a copy of something that the workspace no longer
	// has: either someone removed it, or the run renamed it to here.
	maybeVanished bool

	// unit is what the path lands together with, or not at all: the git directory that it lies in, or the
	// database that it belongs to; "" if none.
	unit string
	// tips are the refs that a new directory is made of which no run wrote.
	tips []tip
	// prune are paths below a new directory that must be taken out of it before it lands, and scrubs what
	// must not land of it, the inner ones first.
	prune  []string
	scrubs []scrub
	// acl is the access control list that a new file takes over from the one that it replaces.
	acl []byte
	// linked is set where a file has several names, or one in a new directory does.
	linked bool

	// added, modified and deleted are what the report says once the change has landed.
	added, modified, deleted []string
}

// count is the number of changes that a person would count.
func (c change) count() int {
	if c.conflict {
		return 1
	}
	return len(c.added) + len(c.modified) + len(c.deleted)
}
