package envs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"airlock/internal/units"
)

// lookInterval is how often a step that goes on is looked at for the text of its progress.
const lookInterval = 300 * time.Millisecond

// tellOf calls progress with what look says, until done is called. It says "" for nothing new. Steps are looked
// at from outside: what they have written is all there is to see.
func tellOf(progress func(string), look func() string) (done func()) {
	if progress == nil {
		return func() {}
	}
	end := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(lookInterval)
		defer tick.Stop()
		last := ""
		for {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			if text := look(); text != "" && text != last {
				progress(text)
				last = text
			}
		}
	})
	return func() {
		close(end)
		looking.Wait()
	}
}

// resolving says how far the step "resolve" is that works in a directory: how many packages were found, and then
// of how many of them the index was asked what it says.
func resolving(build string) string {
	f, err := openRegular(filepath.Join(build, "progress.json"))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 200))
	var at struct{ Found, Done, All int }
	if err != nil || json.Unmarshal(text, &at) != nil {
		return "" // it is being written
	}
	switch {
	case at.All > 0:
		return fmt.Sprintf("resolving %d of %s", at.Done, units.Counted(at.All, "package"))
	case at.Found > 0:
		return fmt.Sprintf("resolving, %s so far", units.Counted(at.Found, "package"))
	}
	return ""
}

// fetching says how far the step "fetch" is: how much it has written of size bytes, 0 if that is not known.
func fetching(build string, size int64) string {
	var written int64
	for _, dir := range []string{"wheels", "tmp"} { // where pip fetches to, and from where it moves it
		_ = filepath.WalkDir(filepath.Join(build, dir), func(_ string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if info, err := d.Info(); err == nil {
				written += info.Size()
			}
			return nil
		})
	}
	switch {
	case written == 0:
		return ""
	case size == 0:
		return "fetching, " + units.Size(written).Rounded() + " so far"
	}
	return fmt.Sprintf("fetching %s of %s", units.Size(min(written, size)).Rounded(), units.Size(size).Rounded())
}
