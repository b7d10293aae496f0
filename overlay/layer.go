package overlay

// Layer is where one transaction, or the part of one that is about one directory, lives, as plain paths:
// Lower is the workspace itself or what else the transaction is about, and Upper and Work are private to
// the transaction and lie on the same filesystem.
//
// Upper is prepared (its root has the workspace's mode and, as far as permitted, owner, because the
// root of the merged view shows them) and must be mounted with the userxattr option.
type Layer struct {
	Lower, Upper, Work string
}
