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

// firstBlank is a blank that is started before it is known what for.
type firstBlank struct {
	uid, gid int
	get      func() (*blank, error)
}

// StartAhead has the init of the first run started, while whoever will ask for the run finds out what that sees. It
// returns at once. A failure shows when a run starts, and is tried again then.
func (n *Native) StartAhead(uid, gid int) {
	first := &firstBlank{uid, gid, sync.OnceValues(func() (*blank, error) { return n.newBlank(uid, gid) })}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.first == nil {
		n.first = first
		go first.get() //nolint:errcheck // whoever takes it has the error
	}
}

// takeBlank gives the first blank, if it is for these ids, or a new one.
func (n *Native) takeBlank(uid, gid int) (*blank, error) {
	n.mu.Lock()
	first := n.first
	if first != nil && first.uid == uid && first.gid == gid {
		n.first = nil
	} else {
		first = nil
	}
	n.mu.Unlock()
	if first != nil {
		if made, err := first.get(); err == nil && !made.mounts.changed() {
			return made, nil
		} else if err == nil {
			made.discard()
		}
	}
	return n.newBlank(uid, gid)
}

// discardFirst ends the first blank if no run has taken it.
func (n *Native) discardFirst() {
	n.mu.Lock()
	first := n.first
	n.first = nil
	n.mu.Unlock()
	if first == nil {
		return
	}
	if made, err := first.get(); err == nil {
		made.discard()
	}
}
