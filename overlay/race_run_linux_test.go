package overlay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"airlock/internal/mcpclient"
)

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
