package sandbox

import "sync"

// blank is an init that has been told nothing yet, and what tells whether it sees the host's mounts of now.
type blank struct {
	init   initProcess
	pipes  *pipes
	mounts *mountWatch
}

// newBlank starts an init.
func (n *Native) newBlank(uid, gid int) (b *blank, err error) {
	b = new(blank)
	if b.mounts, err = watchMounts(); err != nil { // before init has a copy of them
		return nil, setupError("watch mounts", "", err)
	}
	if b.pipes, b.init, err = n.startInit(uid, gid); err != nil {
		b.mounts.close()
		return nil, err
	}
	return b, nil
}

// discard ends init, and with it all that it has been told to build. A nil blank has none.
func (b *blank) discard() {
	if b == nil {
		return
	}
	b.mounts.close()
	b.init.kill()
	b.pipes.closeServer()
	_, _ = b.init.wait()
}

// begun is a blank that is started before it is known what for.
type begun struct {
	uid, gid int
	blank    func() (*blank, error)
}

// Begin has the init of the first run started, while whoever will ask for the run finds out what that sees. It returns
// at once. A failure shows when a run starts, and is tried again then.
func (n *Native) Begin(uid, gid int) {
	b := &begun{uid, gid, sync.OnceValues(func() (*blank, error) { return n.newBlank(uid, gid) })}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.begun == nil {
		n.begun = b
		go b.blank() //nolint:errcheck // whoever takes it has the error
	}
}

// takeBlank gives the init that was begun, if it is for these ids, or a new one.
func (n *Native) takeBlank(uid, gid int) (*blank, error) {
	n.mu.Lock()
	b := n.begun
	if b != nil && (b.uid != uid || b.gid != gid) {
		b = nil
	}
	if b != nil {
		n.begun = nil
	}
	n.mu.Unlock()
	if b != nil {
		if blank, err := b.blank(); err == nil && !blank.mounts.changed() {
			return blank, nil
		} else if err == nil {
			blank.discard()
		}
	}
	return n.newBlank(uid, gid)
}

// discardBegun ends the init that was begun and that no run has taken.
func (n *Native) discardBegun() {
	n.mu.Lock()
	b := n.begun
	n.begun = nil
	n.mu.Unlock()
	if b == nil {
		return
	}
	if blank, err := b.blank(); err == nil {
		blank.discard()
	}
}
