package overlay

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// waitingRecord is what a later process has to know of a run that waits: all that landing it takes and
// the layer does not say.
type waitingRecord struct {
	Run  string    `json:"run"`
	What string    `json:"what,omitempty"`
	Time time.Time `json:"time"`

	Root     recordedInode      `json:"root"`    // the workspace
	Trusted  bool               `json:"trusted"` // ctimes said something; else whatever differs is a conflict
	Seen     []recordedSighting `json:"seen,omitempty"`
	Disputed []rawPath          `json:"disputed,omitempty"` // what was in conflict
	Modes    []recordedMode     `json:"modes,omitempty"`    // of entries of the layer, as the run left them
	Copied   []rawPath          `json:"copied,omitempty"`   // files of the layer that are copies of the workspace's
	Protect  []string           `json:"protect,omitempty"`  // globs that held then
	Hide     []string           `json:"hide,omitempty"`
	Ignore   []string           `json:"ignore,omitempty"`

	Report *recordedReport `json:"report"` // what would have landed
	Bytes  int64           `json:"bytes"`
}

type recordedSighting struct {
	Path  rawPath       `json:"path"`
	Ino   uint64        `json:"ino"`
	Ctime recordedStamp `json:"ctime"`
}

type recordedMode struct {
	Path rawPath `json:"path"`
	Mode uint32  `json:"mode"`
}

// waitingMagic begins a record on disk, as recordMagic does.
const (
	waitingMagic  = "airlock waiting 1 sha256:"
	waitingAnyway = "airlock waiting "
)

// waitingRecordName is the file with the record, in the directory of the run.
const waitingRecordName = "record"

// see fills in what a walk noted.
func (r *waitingRecord) see(c *collector) {
	for _, path := range slices.Sorted(maps.Keys(c.noted)) {
		s := c.noted[path]
		r.Seen = append(r.Seen, recordedSighting{rawPath(path), s.ino, recordedStamp{s.ctime.sec, s.ctime.nsec}})
	}
	for _, path := range slices.Sorted(maps.Keys(c.copied)) {
		r.Copied = append(r.Copied, rawPath(path))
	}
	for _, ch := range c.changes {
		if ch.conflict {
			r.Disputed = append(r.Disputed, rawPath(ch.path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.modes)) {
		r.Modes = append(r.Modes, recordedMode{rawPath(path), c.modes[path]})
	}
}

// tell gives a later walk what see took.
func (r *waitingRecord) tell(c *collector) {
	c.copied, c.disputed = map[string]bool{}, map[string]bool{}
	for _, path := range r.Copied {
		c.copied[string(path)] = true
	}
	for _, path := range r.Disputed {
		c.disputed[string(path)] = true
	}
	if !c.trusted {
		return
	}
	c.seen = sightings{}
	for _, s := range r.Seen {
		c.seen[string(s.Path)] = sighting{s.Ino, stamp{s.Ctime.Sec, s.Ctime.Nsec}}
	}
}

// readWaiting reads the record in the directory of a run that waits. The error is one for a person.
func readWaiting(dir *tree, run string) (*waitingRecord, error) {
	if i, err := statAt(dir.fd, ""); err != nil {
		return nil, err
	} else if i.uid != uint32(os.Geteuid()) || i.mode&0o022 != 0 {
		return nil, fmt.Errorf("%s is not ours alone: it belongs to uid %d and has mode %04o", Quote(dir.path), i.uid, i.mode)
	}
	f, err := dir.file(waitingRecordName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	head, _, _ := bytes.Cut(text, []byte("\n"))
	if bytes.HasPrefix(head, []byte(waitingAnyway)) && !bytes.HasPrefix(head, []byte(waitingMagic)) {
		return nil, fmt.Errorf("its record in %s is of another version of airlock", Quote(dir.path))
	}
	var r waitingRecord
	err = unseal(waitingMagic, text, &r)
	if err == nil && (r.Run != run || r.Report == nil) {
		err = errDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("its record in %s %w", Quote(dir.path), err)
	}
	return &r, nil
}

// writeWaiting writes the record whole, or leaves the one that is there.
func (w *Workspace) writeWaiting(dir *tree, r *waitingRecord) error {
	text, err := seal(waitingMagic, r)
	if err != nil {
		return err
	}
	if err := dir.replace(waitingRecordName, text, w.config.Durable); err != nil {
		return err
	}
	return w.sync(dir, "")
}

// seeAgain notes anew, after a landing was taken back, what had been moved out of the workspace and
// back: that alone moved its ctime. What can't be noted will be a conflict, which is no reason to stop.
func (l *lander) seeAgain(base *tree) {
	if err := l.noteSeen(base); err != nil {
		l.w.addNote("What run " + l.runID + " changed may be in conflict with its own attempt to land: " + Quote(err.Error()) + ".")
	}
}

func (l *lander) noteSeen(base *tree) error {
	dir, err := base.sub(joinPath(waitingName, l.runID))
	if is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.close()
	r, err := readWaiting(dir, l.runID)
	if err != nil {
		return err
	}
	back := map[uint64]stamp{}
	look := func(path string, was func(inode) bool) error {
		now, err := l.host.stat(path)
		if err == nil && now.kind != absent && was(now) {
			back[now.ino] = now.ctime
		}
		return err
	}
	for _, s := range l.steps {
		if err := look(s.path, func(now inode) bool { return now.same(s.host) }); err != nil {
			return err
		}
		dir := parentPath(s.path)
		if err := look(dir, func(now inode) bool { return now.kind == directory }); err != nil {
			return err
		}
	}
	for i, s := range r.Seen {
		if ctime, moved := back[s.Ino]; moved {
			r.Seen[i].Ctime = recordedStamp{ctime.sec, ctime.nsec}
		}
	}
	return l.w.writeWaiting(dir, r)
}
