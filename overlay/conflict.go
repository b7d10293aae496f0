package overlay

import (
	"strconv"
	"unicode/utf8"
)

// nameMax is the longest name that Linux filesystems take, in bytes.
const nameMax = 255

// conflictName returns a name for the run's version of name: NAME.conflict-RUN, and from the second
// attempt on NAME.conflict-RUN-2 and so forth. NAME is cut where the whole would be too long, between
// two characters.
func conflictName(name, run string, attempt int) string {
	suffix := ".conflict-" + run
	if attempt > 1 {
		suffix += "-" + strconv.Itoa(attempt)
	}
	if room := nameMax - len(suffix); len(name) > room {
		cut := room
		for cut > room-utf8.UTFMax && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	return name + suffix
}
