package envs_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"airlock/envs"
	"airlock/internal/filelock"
)

// An environment that is removed is empty, and nothing that was planned or permitted for the old one is good for what comes.
func TestRemove(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six"}
	c := w.begin()
	ctx, store := t.Context(), c.Store()
	if _, _, err := install(c, "default", "six==1.17.0"); err != nil {
		t.Fatal(err)
	}
	stale, err := c.Plan(ctx, envs.Want{Environment: "default", Requirements: []string{"flex"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Grant(ctx, stale.Grant()); err != nil {
		t.Fatal(err)
	}
	elsewhere := stale.Grant()
	elsewhere.Environment = "other"
	if err := store.Grant(ctx, elsewhere); err != nil {
		t.Fatal(err)
	}
	if got := w.sees(c, "default", "six"); got != "1.17.0" {
		t.Fatalf("control: six is %s", got)
	}
	// What can't be read keeps everything as it is.
	if err := os.WriteFile(w.dir+"/environments-r/default.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Remove(ctx, "default"); err == nil {
		t.Error("one with a document that is damaged was removed")
	}
	if grants, err := store.Grants(); err != nil || len(grants) != 2 {
		t.Errorf("grants after that: %+v, %v", grants, err)
	}
	ofR := `{"name":"default","language":"r","roots":["low"],"packages":[{"name":"low","version":"1.0","sha256":"` + strings.Repeat("ab", 32) + `","wheel":"low_1.0.tar.gz"}]}`
	if err := os.WriteFile(w.dir+"/environments-r/default.json", []byte(ofR), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := store.Remove(ctx, "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of one that is not there: %v", err)
	}
	if _, err := os.Stat(w.dir + "/environments/nothing.lock"); err == nil {
		t.Error("the lock of one that is not there is left")
	}
	if _, err := store.Remove(ctx, "../default"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of what is no name: %v", err)
	}
	for _, dir := range []string{"environments", "environments-r"} {
		held, err := filelock.Try(w.dir+"/"+dir+"/default.lock", filelock.Alone)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Remove(ctx, "default"); !errors.Is(err, filelock.ErrHeld) {
			t.Errorf("while something is installed into it: %v", err)
		}
		held.Unlock()
	}

	removed, err := store.Remove(ctx, "default")
	if err != nil || len(removed.Environments) != 2 || set(removed.Environments[0].Packages) != "six 1.17.0" || set(removed.Environments[1].Packages) != "low 1.0" || len(removed.Grants) != 1 || removed.Grants[0].Environment != "default" {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	if e, err := store.Environment("default"); err != nil || len(e.Packages)+len(e.Layers)+len(e.Roots) > 0 {
		t.Errorf("it has %+v, %v", e, err)
	}
	if all, err := store.Environments(); err != nil || len(all) > 0 {
		t.Errorf("listed: %+v, %v", all, err)
	}
	if tree, err := c.Mount(ctx, "default"); tree != nil || err != nil {
		t.Errorf("a run sees %v, %v", tree, err)
	}
	if _, err := store.Remove(ctx, "default"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("once more: %v", err)
	}

	// The plan fits neither what is empty now, nor, by the number of changes, what is made anew.
	if _, err := c.Apply(ctx, stale, nil); !errors.Is(err, envs.ErrChanged) {
		t.Errorf("what was planned before: %v", err)
	}
	if _, _, err := install(c, "default", "six==1.17.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(ctx, stale, nil); !errors.Is(err, envs.ErrChanged) {
		t.Errorf("what was planned before, made anew: %v", err)
	}
	again, err := c.Plan(ctx, envs.Want{Environment: "default", Requirements: []string{"flex"}}, nil)
	if err != nil || len(again.Decision.Ask) == 0 {
		t.Errorf("not asked although the grant went with the environment: %v", err)
	}
	if got := w.sees(c, "default", "six"); got != "1.17.0" {
		t.Errorf("made anew, six is %s", got)
	}
	w.clean()
}
