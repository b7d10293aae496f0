package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"airlock/envs"
	"airlock/internal/filelock"
)

// An environment that something is being installed into is not removed, and that is said with the way out.
func TestRemoveEnvironmentInUse(t *testing.T) {
	dir := t.TempDir()
	store, err := envs.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	held, err := filelock.Try(filepath.Join(dir, "environments", "default.lock"), filelock.Alone)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Unlock()
	var out bytes.Buffer
	err = removeEnvironment(t.Context(), &out, store, "default")
	const want, hint = `something is being installed into the environment "default"`, "try again when that has ended"
	if err == nil || err.Error() != want || !slices.Equal(hintsOf(err), []string{hint}) || out.Len() > 0 {
		t.Errorf("%v, hints %q, printed %q", err, hintsOf(err), &out)
	}
}
