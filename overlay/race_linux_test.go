package overlay

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// The race test lets editors and runs change the same files at random moments. Everything that anyone
// writes is a token, a word of its own, so that afterwards each one can be looked for:
//
//   - What an editor wrote is in the workspace, unless an editor took it away, or a run that began after
//     it was written replaced or removed it. Runs only ever append to the files named "kept…", so
//     from those no token goes but by editors.
//   - What a run wrote is in the workspace, unless an editor took it away, a later run replaced it, or
//     the report says that it did not land.
//
// Editors know what they take away: see editor.
//
// A run here is a bare shell in an overlay, which writes some milliseconds after its transaction began. One of
// a server is in a sandbox, which takes longer to start; see the limitations in doc.go for why that matters. So
// with -race-server, each worker has a server of its own, and all of them one workspace.

var (
	raceRuns   = flag.Int("race-runs", 10, "how many runs race with editors")
	raceServer = flag.String("race-server", "", "the airlock program whose runs race, in place of bare ones")
)

const (
	raceDirs    = 3
	raceEditors = 3
	raceWorkers = 3
)

var raceNames = []string{"kept0", "kept1", "any0", "any1"}

// written is what is known of a word.
type written struct {
	name  string // of the file, without its directory, since these are swapped
	how   string
	since time.Time // before it was written
	run   bool
	gone  bool // someone took it away who may
}

// race is the account.
type race struct {
	f *fixture
	e editor

	editing sync.Mutex // editors don't race with each other, only with landings

	mu     sync.Mutex
	tokens map[string]*written
	held   []*heldFile
	counts map[string]int
	events []event
	errs   []error
}

// event is something that was done, for the account of what is lost.
type event struct {
	from, to time.Time
	what     string
}

// happened notes one, which began at a time and ends now.
func (r *race) happened(from time.Time, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event{from, time.Now(), fmt.Sprintf(format, args...)})
}

// since lists what happened to files of a name, and to directories, from a second before a moment on.
func (r *race) since(at time.Time, name string) string {
	var b strings.Builder
	lines := 0
	for _, e := range r.events {
		if e.to.After(at.Add(-time.Second)) && lines < 100 && (strings.Contains(e.what, name) || strings.HasPrefix(e.what, "swapped")) {
			lines++
			fmt.Fprintf(&b, "\n  %v to %v: %s", e.from.Sub(at).Round(time.Microsecond), e.to.Sub(at).Round(time.Microsecond), e.what)
		}
	}
	return b.String()
}

func (r *race) wrote(word, name, how string, run bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens[word] = &written{name: name, how: how, since: time.Now(), run: run}
}

func (r *race) took(words string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range strings.Fields(strings.ReplaceAll(words, "\x00", " ")) {
		if tok := r.tokens[w]; tok != nil {
			tok.gone = true
		}
	}
}

func (r *race) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

// sawBoth reports whether something landed and something was in conflict.
func (r *race) sawBoth() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts["landed"] > 0 && r.counts["conflicts"] > 0
}

func (r *race) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// TestRace is that.
func TestRace(t *testing.T) {
	for fs, base := range bases(t) {
		t.Run(fs, func(t *testing.T) { raceOn(t, base) })
	}
}

func raceOn(t *testing.T, base string) {
	f := newFixture(t, base, "", func(c *Config) { c.Undo = 16 << 20 })
	run(t, f.begin().Layer(), "true") // skips where there is no overlay
	r := &race{f: f, tokens: map[string]*written{}, counts: map[string]int{}}
	r.e = editor{f.dir, r.dropped}
	for d := range raceDirs {
		makeDirs(t, r.e.path(fmt.Sprint("d", d)))
		must(os.Chmod(r.e.path(fmt.Sprint("d", d)), 0o755))
		for _, name := range raceNames {
			word := fmt.Sprintf("base%d%s", d, name)
			r.wrote(word, name, "base", false)
			must(os.WriteFile(r.e.path(fmt.Sprintf("d%d/%s", d, name)), []byte(word+"\n"), 0o644))
		}
	}
	stop := make(chan struct{})
	var editors, workers sync.WaitGroup
	for i := range raceEditors {
		editors.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
				}
				r.edit(fmt.Sprintf("e%dx%d", i, n))
			}
		})
	}
	next := make(chan int)
	for range raceWorkers {
		do := r.bare
		if *raceServer != "" {
			do = served(startServer(t, f))
		}
		workers.Go(func() {
			for n := range next {
				if err := r.run(fmt.Sprintf("race%d", n), do); err != nil {
					r.failed(fmt.Errorf("run %d: %w", n, err))
				}
			}
		})
	}
	start := time.Now()
	runs := 0
	// On a host that is busy with other things the few runs of a short race can all be in conflict.
	for runs < *raceRuns || runs < 50**raceRuns && !r.sawBoth() {
		next <- runs
		runs++
	}
	close(next)
	workers.Wait()
	close(stop)
	editors.Wait()
	for i := range r.held {
		if _, err := r.letGo(fmt.Sprint("last", i)); err != nil {
			t.Error(err)
		}
	}
	for _, err := range r.errs {
		t.Error(err)
	}
	found := map[string]bool{}
	for _, word := range tokens(t, f.dir) {
		found[word] = true
	}
	lost, gone := 0, 0
	for word, tok := range r.tokens {
		switch {
		case found[word]:
		case tok.gone:
			gone++
		default:
			lost++
			t.Errorf("%s, written to %s at %v, is lost (%s):%s", word, tok.name, tok.since, tok.how, r.since(tok.since, tok.name))
		}
	}
	t.Logf("%d runs in %v: %d tokens, %d of them found, %d taken away by who may, %d lost; %v",
		runs, time.Since(start).Round(time.Second), len(r.tokens), len(r.tokens)-gone-lost, gone, lost, r.counts)
	if !r.sawBoth() {
		t.Error("nothing landed, or nothing was in conflict")
	}
	if left := f.leftovers(); strings.Contains(left, "race") {
		t.Errorf("left: %s", left)
	}
}
