package overlay

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// historyEntry is the name of a landing in the history: TIME.RUN.SIZE while what it replaced is kept, in
// bytes, and TIME.RUN.dropped or TIME.RUN.undone afterwards. The names sort by time, which is in
// nanoseconds since 1970, in hexadecimal. All that has to be known to bound the history is in them.
type historyEntry struct {
	time  uint64
	run   string
	size  uint64
	state string // "", entryDropped or entryUndone
}

const (
	entryDropped = "dropped"
	entryUndone  = "undone"
)

func newEntry(now time.Time, run string, size uint64) historyEntry {
	return historyEntry{time: uint64(now.UnixNano()), run: run, size: size}
}

// String is the name.
func (e historyEntry) String() string {
	last := e.state
	if last == "" {
		last = strconv.FormatUint(e.size, 10)
	}
	return fmt.Sprintf("%016x.%s.%s", e.time, e.run, last)
}

// as is the entry in another state.
func (e historyEntry) as(state string) historyEntry {
	e.state, e.size = state, 0
	return e
}

// parseEntry reads a name.
func parseEntry(name string) (historyEntry, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return historyEntry{}, false
	}
	e := historyEntry{run: parts[1]}
	var err error
	if e.time, err = strconv.ParseUint(parts[0], 16, 64); err != nil {
		return historyEntry{}, false
	}
	if parts[2] == entryDropped || parts[2] == entryUndone {
		e.state = parts[2]
	} else if e.size, err = strconv.ParseUint(parts[2], 10, 64); err != nil {
		return historyEntry{}, false
	}
	return e, e.String() == name
}
