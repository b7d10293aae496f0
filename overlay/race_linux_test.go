package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"airlock/internal/mcpclient"
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
// Editors know what they take away: see editor. The file is long because editors, runs and the account of
// what they wrote are one experiment.
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

// heldFile is a file that an editor has open to append to it.
type heldFile struct {
	*os.File
	name string
	id   os.FileInfo
	gone bool // an editor removed it, and so what is appended
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

// edit does one thing at random.
func (r *race) edit(word string) {
	r.editing.Lock()
	defer r.editing.Unlock()
	name := raceNames[rand.IntN(len(raceNames))]
	path := fmt.Sprintf("d%d/%s", rand.IntN(raceDirs), name)
	edits := []struct {
		what string
		do   func() (string, error)
	}{
		{"in place", func() (string, error) { return r.e.inPlace(path, word) }},
		{"backdated", func() (string, error) { return r.e.backdated(path, word) }},
		{"renamed", func() (string, error) { return r.e.renamed(path, word) }},
		{"appended", func() (string, error) { return r.e.appended(path, word) }},
		{"removed", func() (string, error) { return r.e.removed(path, word) }},
		{"mapped", func() (string, error) { return r.e.mapped(path, word) }},
		{"linked", func() (string, error) { return r.e.linked(path, word) }},
		{"chmodded", func() (string, error) { return r.e.chmodded(path, word) }},
		{"opened", func() (string, error) { return "", r.hold(path, name) }},
		{"let go", func() (string, error) { return r.letGo(word) }},
		{"swapped", func() (string, error) { return r.swap() }},
	}
	edit := edits[rand.IntN(len(edits))]
	if edit.what == "swapped" && rand.IntN(8) > 0 {
		return // after one, all that runs change in these directories is in conflict
	}
	r.wrote(word, name, edit.what, false)
	start := time.Now()
	gone, err := edit.do()
	r.took(gone)
	r.happened(start, "%s %s with %s took %q: %v", edit.what, path, word, gone, err)
	switch {
	case err == nil:
		r.count(edit.what)
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist):
		r.took(word) // it was not written
	default:
		r.failed(fmt.Errorf("%s %s: %w", edit.what, path, err))
	}
	if slices.Contains([]string{"removed", "chmodded", "opened", "swapped"}, edit.what) {
		r.took(word) // nothing was written
	}
}

// dropped notes of a file that is held that an editor took it away.
func (r *race) dropped(file os.FileInfo) {
	for _, h := range r.held {
		if os.SameFile(file, h.id) {
			h.gone = true
		}
	}
}

func (r *race) hold(path, name string) error {
	f, err := os.OpenFile(r.e.path(path), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	id, err := f.Stat()
	if err == nil {
		r.held = append(r.held, &heldFile{f, name, id, false})
	}
	return err
}

// letGo appends to a held file, which in all that time nobody may have replaced, and closes it.
func (r *race) letGo(word string) (what string, err error) {
	if len(r.held) == 0 {
		return "", os.ErrNotExist
	}
	i := rand.IntN(len(r.held))
	h := r.held[i]
	r.wrote(word, h.name, "held", false)
	if h.gone {
		r.took(word)
	}
	r.held = append(r.held[:i], r.held[i+1:]...)
	_, err = h.WriteString(word + "\n")
	return "(" + h.name + ")", errors.Join(err, h.Close())
}

func (r *race) swap() (what string, err error) {
	a := rand.IntN(raceDirs)
	b := (a + 1 + rand.IntN(raceDirs-1)) % raceDirs
	return fmt.Sprintf("d%d <> d%d", a, b),
		unix.Renameat2(unix.AT_FDCWD, r.e.path(fmt.Sprint("d", a)), unix.AT_FDCWD, r.e.path(fmt.Sprint("d", b)), unix.RENAME_EXCHANGE)
}

// ran is what came of a run. What was written before it began, it may replace.
type ran struct {
	Report
	began  time.Time
	failed error // of the script; nothing landed
}

// racer does one run and lands what it wrote.
type racer func(id, script string) (ran, error)

// bare does runs of the fixture.
func (r *race) bare(id, script string) (ran, error) {
	txn, err := r.f.Begin(context.Background(), id)
	if err != nil {
		return ran{}, err
	}
	done := ran{began: time.Now(), failed: tryRun(txn.Layer(), script)}
	if done.failed != nil {
		_, err := txn.Discard("script")
		return done, err
	}
	done.Report, err = txn.Land(context.Background())
	return done, err
}

// served does runs by a server. When exactly one began is not known, so what it replaced may have been written
// until its script began; what it only appends to shows what is lost before.
func served(client *mcpclient.Client) racer {
	return func(_, script string) (ran, error) {
		result, err := client.CallTool(context.Background(), "run_shell", map[string]any{"command": "date +%s%N\n" + script}, nil)
		if err != nil {
			return ran{}, err
		}
		var told struct {
			Status    string
			Output    string
			ExitCode  int `json:"exit_code"`
			Workspace struct {
				Landed                   bool
				Added, Modified, Deleted []string
				Conflicts                []struct {
					Path   string
					KeptAs string `json:"kept_as"`
				}
				Withheld []Withheld
			}
			Notes []string
		}
		if err := json.Unmarshal(result.Structured, &told); err != nil {
			return ran{}, err
		}
		var began int64
		if _, err := fmt.Sscan(told.Output, &began); err != nil || told.Status != "exited" {
			return ran{}, errors.New(result.Text)
		}
		done := ran{began: time.Unix(0, began)}
		if told.ExitCode != 0 {
			done.failed = errors.New(result.Text)
		}
		w := told.Workspace
		done.Report = Report{Landed: w.Landed, Added: w.Added, Modified: w.Modified, Deleted: w.Deleted, Withheld: w.Withheld, Notes: told.Notes}
		for _, c := range w.Conflicts {
			done.Conflicts = append(done.Conflicts, Conflict{Path: c.Path, KeptAs: c.KeptAs})
		}
		return done, nil
	}
}

// script is what one run does, with what it writes by path, and the names of which it replaces files.
func (r *race) script(id string) (text string, words map[string]string, replaced map[string]bool) {
	var script strings.Builder
	words, replaced = map[string]string{}, map[string]bool{}
	script.WriteString("set -e\n")
	for i := range 1 + rand.IntN(3) {
		name := raceNames[rand.IntN(len(raceNames))]
		path := fmt.Sprintf("d%d/%s", rand.IntN(raceDirs), name)
		if words[path] != "" {
			continue
		}
		word := fmt.Sprintf("%sw%d", id, i)
		words[path] = word
		r.wrote(word, name, "run", true)
		how := 0
		if !strings.HasPrefix(name, "kept") {
			how = rand.IntN(4)
		}
		switch how {
		case 0:
			fmt.Fprintf(&script, "echo %s >> %s\n", word, path)
		case 1:
			fmt.Fprintf(&script, "echo %s > %s\n", word, path)
		case 2:
			fmt.Fprintf(&script, "echo %s > d0/t; mv d0/t %s\n", word, path)
		case 3:
			fmt.Fprintf(&script, "rm -f %s\n", path)
			r.took(word)
		}
		if how > 0 {
			replaced[name] = true
		}
		fmt.Fprintf(&script, "sleep 0.00%d\n", rand.IntN(10))
	}
	return script.String(), words, replaced
}

// run is one run, with what it writes.
func (r *race) run(id string, do racer) error {
	script, words, replaced := r.script(id)
	start := time.Now()
	report, err := do(id, script)
	r.happened(start, "%s, %q, began %v: %+v, %v", id, script, report.began.Sub(start), report.Report, report.failed)
	if err != nil {
		return err
	}
	if report.failed != nil {
		for _, word := range words {
			r.took(word)
		}
		// What a run sees of a directory that is swapped is undefined; that it can't write is one thing
		// that it can see.
		for _, seen := range []string{"Directory nonexistent", "No such file", "Stale file"} {
			if strings.Contains(report.failed.Error(), seen) {
				r.count("run failed")
				return nil
			}
		}
		return report.failed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !report.Landed && len(report.Conflicts) == 0 {
		return nil // nothing changed
	}
	told := map[string]bool{}
	for _, c := range report.Conflicts {
		told[c.Path] = true
		r.counts["conflicts"]++
		if word := words[c.Path]; word != "" && c.KeptAs == "" {
			r.tokens[word].gone = true
		}
	}
	r.counts["landed"] += len(report.Added) + len(report.Modified) + len(report.Deleted)
	for path, word := range words {
		if !report.Landed {
			r.tokens[word].gone = true
		}
		name := filepath.Base(path)
		if !replaced[name] || told[path] {
			continue
		}
		// What was there when it began, it may replace.
		for _, tok := range r.tokens {
			if tok.name == name && tok.since.Before(report.began) {
				tok.gone = true
			}
		}
	}
	return nil
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

// startServer starts a server on the workspace, with a state directory beside the fixture's.
func startServer(t *testing.T, f *fixture) *mcpclient.Client {
	t.Helper()
	cmd := exec.Command(*raceServer, "--workspace", f.dir)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+f.state+"-servers")
	client, err := mcpclient.Start(context.Background(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}
