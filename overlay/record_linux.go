package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// record is what is written down of a landing: as the journal before its first step is taken, and as
// an entry of the history with the landing itself.
type record struct {
	Run    string    `json:"run"`
	What   string    `json:"what,omitempty"`   // the tool or command line, as it was given
	Undoes string    `json:"undoes,omitempty"` // the entry of the history that this one takes back
	Waited bool      `json:"waited,omitempty"` // it waited for review
	Time   time.Time `json:"time"`

	Root   recordedInode  `json:"root"`  // the workspace
	Layer  rawPath        `json:"layer"` // absolute path of BASE/SERVER/RUN
	Entry  string         `json:"entry"` // what the landing is called in the history, once it is done
	Marker *recordedStamp `json:"marker,omitempty"`
	Opened []recordedDir  `json:"opened,omitempty"`
	Steps  []recordedStep `json:"steps"`

	// With is the landing in a git directory outside that this one is one with, and Of, of that one, the
	// workspace.
	With *recordedWith `json:"with,omitempty"`
	Of   rawPath       `json:"of,omitempty"`

	Report *recordedReport `json:"report,omitempty"` // of an entry
}

// recordedWith is a landing in another directory, as whoever looks for it there finds it.
type recordedWith struct {
	Dir   rawPath `json:"dir"`
	Base  rawPath `json:"base"` // where its history is
	Entry string  `json:"entry"`
}

// recordedStep is a step. Was is what it replaces or removes, Put what it puts.
type recordedStep struct {
	// Index is where it stands in the plan, and its name in the directory of the landing.
	Index int            `json:"index"`
	Do    string         `json:"do"`
	Path  rawPath        `json:"path"`
	Was   *recordedInode `json:"was,omitempty"`
	Put   *recordedInode `json:"put,omitempty"`
	Unit  rawPath        `json:"unit,omitempty"`

	// Of an entry: what lay at the path when the landing was done, and attributes of a directory that
	// was removed.
	Landed *recordedInode    `json:"landed,omitempty"`
	Attrs  map[string][]byte `json:"attrs,omitempty"`
	// Entries is a digest of the entries of an index of git that landed.
	Entries []byte `json:"entries,omitempty"`
}

// recordedDir is a directory of the workspace that a landing may have to make writable for a while.
type recordedDir struct {
	Path rawPath `json:"path"`
	Ino  uint64  `json:"ino"`
	Mode uint32  `json:"mode"`
}

type recordedStamp struct {
	Sec  int64  `json:"s"`
	Nsec uint32 `json:"n"`
}

type recordedInode struct {
	Kind  string        `json:"kind"`
	Mode  uint32        `json:"mode"`
	UID   uint32        `json:"uid"`
	GID   uint32        `json:"gid"`
	Dev   uint64        `json:"dev"`
	Ino   uint64        `json:"ino"`
	Size  uint64        `json:"size"`
	Mtime recordedStamp `json:"mtime"`
	Ctime recordedStamp `json:"ctime"`
}

var kindNames = [...]string{absent: "absent", regular: "file", directory: "directory", symlink: "link", special: "special"}

func recordInode(i inode) *recordedInode {
	if i.kind == absent {
		return nil
	}
	return &recordedInode{
		Kind: kindNames[i.kind], Mode: i.mode, UID: i.uid, GID: i.gid, Dev: i.dev, Ino: i.ino, Size: i.size,
		Mtime: recordedStamp{i.mtime.sec, i.mtime.nsec}, Ctime: recordedStamp{i.ctime.sec, i.ctime.nsec},
	}
}

// inode is what was recorded; nil is the zero inode.
func (r *recordedInode) inode() (inode, error) {
	if r == nil {
		return inode{}, nil
	}
	i := inode{
		mode: r.Mode, uid: r.UID, gid: r.GID, dev: r.Dev, ino: r.Ino, size: r.Size,
		mtime: stamp{r.Mtime.Sec, r.Mtime.Nsec}, ctime: stamp{r.Ctime.Sec, r.Ctime.Nsec},
	}
	for k, name := range kindNames {
		if name == r.Kind {
			i.kind = kind(k)
			return i, nil
		}
	}
	return inode{}, fmt.Errorf("unknown kind %q", r.Kind)
}

// recordedReport is a Report whose paths can be any bytes.
type recordedReport struct {
	Added     []rawPath          `json:"added,omitempty"`
	Modified  []rawPath          `json:"modified,omitempty"`
	Deleted   []rawPath          `json:"deleted,omitempty"`
	Conflicts []recordedConflict `json:"conflicts,omitempty"`
	Withheld  []recordedWithheld `json:"withheld,omitempty"`
	Notes     []string           `json:"notes,omitempty"`
	Undo      bool               `json:"undo,omitempty"`
}

type recordedConflict struct {
	Path   rawPath `json:"path"`
	KeptAs rawPath `json:"kept_as,omitempty"`
	Gone   bool    `json:"gone,omitempty"`
}

type recordedWithheld struct {
	Path rawPath `json:"path"`
	Why  string  `json:"why"`
}

// putBeside reports whether all that a landing did, of which this is the entry, was to put versions beside what someone
// else had changed, and returns their paths. Nothing of it can be taken back or shown.
func (r record) putBeside() (paths []string, only bool) {
	changed := len(r.Report.Added) + len(r.Report.Modified) + len(r.Report.Deleted)
	if len(r.Steps) > 0 || changed > 0 || r.With != nil || r.Of != "" { // such a step is not written down in an entry
		return nil, false
	}
	for _, c := range r.Report.Conflicts {
		if c.KeptAs != "" {
			paths = append(paths, string(c.KeptAs))
		}
	}
	return paths, true
}

func recordReport(r Report) *recordedReport {
	out := recordedReport{Added: rawPaths(r.Added), Modified: rawPaths(r.Modified), Deleted: rawPaths(r.Deleted), Notes: r.Notes, Undo: r.Undo}
	for _, c := range r.Conflicts {
		out.Conflicts = append(out.Conflicts, recordedConflict{rawPath(c.Path), rawPath(c.KeptAs), c.Gone})
	}
	for _, w := range r.Withheld {
		out.Withheld = append(out.Withheld, recordedWithheld{rawPath(w.Path), w.Why})
	}
	return &out
}

func (r *recordedReport) report() Report {
	out := Report{Landed: true, Added: pathStrings(r.Added), Modified: pathStrings(r.Modified), Deleted: pathStrings(r.Deleted), Notes: r.Notes, Undo: r.Undo}
	for _, c := range r.Conflicts {
		out.Conflicts = append(out.Conflicts, Conflict{string(c.Path), string(c.KeptAs), c.Gone})
	}
	for _, w := range r.Withheld {
		out.Withheld = append(out.Withheld, Withheld{string(w.Path), w.Why})
	}
	return out
}

func rawPaths(paths []string) []rawPath {
	out := make([]rawPath, len(paths))
	for i, p := range paths {
		out[i] = rawPath(p)
	}
	return out
}

func pathStrings(paths []rawPath) []string {
	var out []string
	for _, p := range paths {
		out = append(out, string(p))
	}
	return out
}

// rawPath is a path of any bytes. In JSON it is the path itself, or a Go string literal where that
// would not be printable text, as with [Quote], but never cut.
type rawPath string

// MarshalText implements [encoding.TextMarshaler].
func (p rawPath) MarshalText() ([]byte, error) {
	if p == "" {
		return nil, nil
	}
	return []byte(Literal(string(p))), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *rawPath) UnmarshalText(text []byte) error {
	if !bytes.HasPrefix(text, []byte(`"`)) {
		*p = rawPath(text)
		return nil
	}
	s, err := strconv.Unquote(string(text))
	*p = rawPath(s)
	return err
}

// recordMagic begins a record on disk: this line with a sum of the rest, then one JSON document.
const recordMagic = "airlock landing 1 sha256:"

var errDamaged = errors.New("is damaged")

func (r record) encode() ([]byte, error) { return seal(recordMagic, r) }

// seal encodes a document: a line of the magic and a sum, then JSON.
func seal(magic string, document any) ([]byte, error) {
	body, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return slices.Concat([]byte(magic+hex.EncodeToString(sum[:])+"\n"), body), nil
}

// unseal reads what seal wrote, and nothing else.
func unseal(magic string, text []byte, document any) error {
	head, body, found := bytes.Cut(text, []byte("\n"))
	sum := sha256.Sum256(body)
	if !found || string(head) != magic+hex.EncodeToString(sum[:]) {
		return errDamaged
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(document); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errDamaged
	}
	return nil
}

// decodeRecord reads what encode wrote, and nothing else.
func decodeRecord(text []byte) (record, error) {
	var r record
	if err := unseal(recordMagic, text, &r); err != nil {
		return record{}, err
	}
	for _, s := range r.Steps {
		if _, err := s.step(r.Root.Dev, r.Root.Dev); err != nil {
			return record{}, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	return r, nil
}

// step is what was recorded. Device numbers do not outlast a reboot: the one of the workspace then
// is replaced by the one of now.
func (s recordedStep) step(then, now uint64) (step, error) {
	out := step{change: change{path: string(s.Path), unit: string(s.Unit)}, index: s.Index, attrs: s.Attrs, entries: s.Entries}
	kind := -1
	for k, name := range stepNames {
		if name == s.Do {
			kind = k
		}
	}
	if kind < 0 {
		return step{}, fmt.Errorf("unknown step %q", s.Do)
	}
	out.kind = stepKind(kind)
	if err := checkPath(out.path); err != nil {
		return step{}, err
	}
	for _, i := range []struct {
		from *recordedInode
		to   *inode
	}{{s.Was, &out.host}, {s.Put, &out.run}, {s.Landed, &out.landed}} {
		var err error
		if *i.to, err = i.from.inode(); err != nil {
			return step{}, err
		}
		if i.to.kind != absent && i.to.dev == then {
			i.to.dev = now
		}
	}
	return out, nil
}

func recordStep(s step) recordedStep {
	return recordedStep{
		Do: stepNames[s.kind], Path: rawPath(s.path), Unit: rawPath(s.unit), Index: s.index, Attrs: s.attrs, Entries: s.entries,
		Was: recordInode(s.host), Put: recordInode(s.run), Landed: recordInode(s.landed),
	}
}
