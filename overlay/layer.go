package overlay

// Layer is where one transaction, or the part of one that is about one directory, lives, as plain paths:
// Lower is the workspace itself or what else the transaction is about, and Upper and Work are private to
// the transaction and lie on the same filesystem. Mask, if it is not "", is a further lower layer above
// Lower that hides paths of it; see [Workspace.Hide].
//
// Of a [View], Upper and Work are "": what is mounted is read-only.
//
// Upper is prepared (its root has the workspace's mode and, as far as permitted, owner, because the
// root of the merged view shows them) and must be mounted with the userxattr option.
//
// Where Copy is not empty Lower can't be an overlay's lower layer. Copy is a private copy of it, a
// directory or a file, to be bound in its place for reading and writing; Upper and Work are empty then.
type Layer struct {
	Lower, Upper, Work string
	Copy               string
	Mask               string

	// ReadOnly shows Lower as it is, without a layer.
	ReadOnly bool

	// Writable shows Lower as it is, to be written; Masked puts something empty in its place. See [Held].
	Writable, Masked bool

	// Via is another path that leads to Lower, through links that a run has to see, too; "" for none.
	Via string
}
