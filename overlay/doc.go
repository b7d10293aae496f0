// Package overlay makes what a run does to a workspace one transaction: it lands as a whole, or it is
// thrown away.
//
// The lower layer is the workspace itself, live and never copied, and each run writes into a layer of
// its own. So the cost of a transaction grows with what the run changes, not with the size of the
// workspace. People and other programs go on to work in the workspace meanwhile: what someone else
// wrote since the transaction began is never overwritten or removed.
//
// # What an attacker controls
//
// Everything in the layer: names of any bytes, trees of any depth, links to anywhere, special files,
// modes that forbid reading, extended attributes. And, by what earlier runs landed, the content of the
// workspace. It does not control the workspace while a landing goes on (its processes are gone by
// then), but someone else may rename directories there at any moment. So every path of the workspace
// and of the layer is resolved beneath an open directory, without following a link and without
// crossing into another mount; files of the host are never written, only renamed; special files are
// never opened; and no name is printed unquoted.
//
// # Life cycle
//
//	w, err := overlay.Open("/home/me/project", stateDir, overlay.Defaults())
//	…
//	defer w.Close()
//
//	txn, err := w.Begin(ctx, "7f3a")
//	…
//	// Mount txn.Layers() and run something in it. When the last process is gone and the mount is:
//	report, err := txn.Land(ctx) // or txn.Discard("timeout")
//	fmt.Println(report.Summary())
//
// A transaction ends with exactly one Land, Park or Discard. Any number may be open at once, in any number
// of processes; landings of one workspace happen one after the other. What a server that was killed
// left behind is removed by the next Open.
//
// A landing is staged, recorded, applied and finished. If it fails, or its process is killed at any
// moment, it is taken back: by the same process, or by the next one that opens the workspace, begins
// or lands a transaction in it (see journal_linux.go). One that is done is in the history with what
// it replaced, and can be taken back by another landing:
//
//	landings, err := w.History(ctx) // the newest first
//	err = w.Diff(ctx, "7f3a", os.Stdout)
//	report, err = w.Undo(ctx, "7f3a")
//
// One that was parked waits for review, in the state directory and for as long as it takes:
//
//	report, err := txn.Park(ctx)
//	waiting, err := w.Waiting(ctx)            // the newest first
//	report, err = w.LandWaiting(ctx, "7f3a") // or w.DiscardWaiting
//
// A workspace whose mode is "readonly" has no transactions but views: what is mounted for a run shows the
// workspace without what is hidden, and takes no writes.
//
// One whose mode is "direct" has neither: Hold says what has to be mounted for a run that writes to the workspace
// itself, so that it is kept from what a landing would withhold.
//
// What runs have as ~/.cache is another directory, which lands with them without any of that: see [Cache].
//
// # How a conflict is found
//
// There is no copy of the workspace to compare with. Begin reads the clock that the filesystem stamps
// inodes with (see marker); a path of the workspace whose ctime is at or after that moment was changed
// since, because a ctime can't be set by hand. A landing looks at the ctimes of the paths that the run
// changed when it makes its plan, once more right before it changes each, and then at what a rename
// brought out. Where both sides came to the same content and mode there is no conflict. If the clock
// was set back, or the filesystem's clock is another host's, everything that differs is a conflict.
// What waits for review is compared with what was seen when it began to wait: path, inode and ctime.
//
// A file that someone has open for writing, or mapped so, is a conflict too, since no ctime says what
// they will write. A lease finds that out, and lasts over the last look and the rename (see
// lease_linux.go).
//
// A git directory is judged as one (see settleGit), and so are a database of SQLite and the files beside
// it. No conflict file is ever made in either.
//
// # Vocabulary
//
//   - lower layer, upper layer, whiteout, opaque, copy-up: as in the kernel's overlayfs.rst. Layer here
//     is the upper one, unless said.
//   - to land: to bring a layer's changes into the workspace. (Others say commit or promote.)
//   - host: the workspace outside of any run, and whoever works there.
//   - conflict: a path that both the run and someone else changed. The host's version stays where it
//     is, and the run's is put beside it as NAME.conflict-RUN.
//   - to park: to keep a layer for a review in place of landing it. It waits then.
//   - history: the landings that are done, with what they replaced, as far as [Config.Undo] goes.
//   - mask: a lower layer above the workspace that hides paths of it from a run; see [Workspace.Hide].
//   - git directory outside: one that the workspace's .git leads to and that does not lie in the workspace. It
//     has a layer of its own, and both land together (see joint_linux.go).
//   - withheld: a change that does not land though the run does, such as one of a protected path.
//
// # Limitations
//
//   - Without [Config.Durable] a landing that a loss of power cuts off can be half done. With it, as
//     far as the filesystem keeps what fsync promises.
//   - Hold holds what exists: not a protected path that is made later, nor one that the host replaces by a
//     rename during the run, nor a link in the place of one, nor another hard link.
//   - When a landing that was cut off is taken back, an edit in place that gives the file its size and
//     mtime back is not seen if it came within 20 ms of the end of that process; nor, of a file with
//     several names that all landed, if it came before that end.
//   - When the landing of a run that waited was cut off and taken back, what it had moved out and back is
//     told by size, mtime, mode and owner too: an edit in between that restores all of these is not seen
//     when the run lands after all.
//   - A run that waits for review can't be landed once the workspace is another directory, such as a copy
//     of what it was. Where layers can't lie on its filesystem, no run can wait.
//   - What lands again by an undo are the files as they were: directories are made anew, and with them
//     only modes, owners, mtimes, and attributes of the user class.
//   - A directory whose entries someone else changed, in a directory whose entries someone else
//     changed, can't be told from one that was swapped for another: what the run changed in it is a
//     conflict then. An undo keeps such a directory with all that is in it.
//   - If someone else removes a file while a run writes it anew (and does not change the one that was
//     there), the run's lands at its path: the layer does not tell it from a new file. The same holds
//     for a file with several hard links, whose origin overlayfs does not note.
//   - Where no lease can be had (the filesystem knows none, as NFS and FUSE, or the file is one that we
//     may not read, or another user's and we are not root), a process that has a file open for writing
//     while it is replaced goes on to write to the replaced one. Its writes up to the rename are seen.
//   - A process that is between looking a path up and opening it, which is some microseconds of the
//     kernel's, while all of the last look, the rename and the end of the lease pass, opens the replaced
//     file, too.
//   - The kernel stamps a write before it copies the data, and a rename before anyone sees it. One that is
//     stamped before a run begins, is there only after the run read the file, and is over by the time the run
//     lands, is not seen. That takes a writer that waits all that time in the middle of one call, for a CPU or for
//     the disk: as long as the sandbox of a run takes to start, tens of milliseconds. Runs that wrote within
//     milliseconds of their beginning lost one of some 8,000 edits so; 4,000 runs of real servers, three at once
//     under three editors, none of 34,000.
//   - A write through a shared mapping moves no ctime while its page, dirty since before the run began,
//     waits to be written to disk. An edit that was made so, and only so, is not seen once the mapping
//     is gone; as long as it is there, the file is open for writing.
//   - Whatever moves a ctime counts as a change: a mode set to what it was, an atime or mtime set, one
//     more hard link. Reading does not, nor does fsync.
//   - A protected path that is a link in the workspace already protects the link, not what it leads to:
//     a run can change scripts/pre-commit where .git/hooks/pre-commit is a link to it.
//   - A git directory outside of the workspace is used only if it names the workspace: one that was made
//     by git init --separate-git-dir does not, until core.worktree is set in it, nor does one with a
//     configuration that the parser for hostile ones refuses. A linked worktree of a repository with a
//     reftable, or that lies in the repository itself, has none.
//   - A worktree that a run adds within the workspace lands, if the workspace holds the repository. That it
//     moves or removes one does not, nor does a submodule that it adds: .gitmodules and .git files are
//     protected.
//   - Of what a run in a linked worktree does to the repository, its configuration and new worktrees
//     don't land, and no object is ever removed.
//   - Where someone else changed HEAD, a ref or an entry of the index of a repository meanwhile, only objects
//     land in it, and what the run's refs led to as refs/airlock/RUN; older entries of its stash don't. Of a
//     repository that keeps its refs in a reftable only the objects land then. A repository below the root
//     whose index someone else only refreshed counts as changed: only the root's is compared with what it was.
//   - A change of a git directory or of a database that is found only while the steps are taken, between the
//     judgement and its turn, takes the whole landing back.
//   - Attributes and times of directories that the workspace has already don't land; their modes do.
//   - A file of the workspace that has several names is changed under the one that the run changed, and
//     the others keep what was there, since copy-up breaks hard links. Where a run links such a file to a
//     new name, that is a copy. A file with one name that a run links to another stays one file with it.
//   - A file that replaces another by a rename has its group, and its access control list unless it
//     has one of its own. A run can't take such a list away by replacing the file.
//   - Attributes of security modules don't land, but for those that the kernel gives a new file by itself: where SELinux
//     labels files, the label of what lands is the one that it had in the layer. A file of the workspace with one that the
//     kernel takes from nobody but the host's root, such as Smack's on a host without Smack, can't be copied up: a run that
//     writes to it gets EPERM, and can replace it.
//   - A path of more than 4,095 bytes does not land, though it can lie in the workspace.
//   - An undo does not bring back what makes a directory a git directory if something that git obeys there has
//     changed since: that could land because git did not obey it then.
//   - What undo keeps is counted by the size of files, holes included.
//   - What someone puts at a hidden path while a run goes on is hidden from that run only if something was
//     there before, or a pattern names just that path, or all that its directory holds. What is hidden in one
//     that someone makes or renames meanwhile shows.
//   - The names of hidden files tell apart upper and lower case, on any filesystem, and another hard link
//     with a name that is not hidden shows the file.
//   - What is mounted in the workspace has a layer of its own in a run, and nothing that is changed there
//     lands. In a user namespace no directory with a mount inside can be an overlay's lower layer: the
//     run works on a private copy then, whose cost grows with the workspace.
//   - Sockets, FIFOs, devices and what the server can't read are not in a private copy. Of attributes it
//     has those of the user class and access control lists.
//   - What git's core.hooksPath or include.path names is protected as the files say when a run lands. What
//     programs there call in their turn is not. The configuration of a repository below the root counts from
//     where a landing reaches its directory.
package overlay
