package overlay

import (
	"context"
	"errors"
	"testing"
)

// TestDiscard counts and leaves nothing.
func TestDiscard(t *testing.T) {
	f := onDisk(t, "echo 1 > a; mkdir -p d/e; echo 1 > d/e/f; echo 1 > d/g")
	txn := f.begin()
	run(t, txn.Layer(), "echo 2 > a; echo new > b; rm -r d; mkdir -p ro/x/y; mkfifo p; chmod 555 ro/x ro")
	report, err := txn.Discard("timeout")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := report.Summary(), "workspace: discarded 6 changes (timeout)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if left := f.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
	f.host("grep -qx 1 a; ! test -e b; test -e d/e/f; ! test -e ro")
}

// TestLandCancelled: before the first change a landing can be ended, and nothing of it is left.
func TestLandCancelled(t *testing.T) {
	f := onDisk(t, "echo 1 > f")
	txn := f.begin()
	run(t, txn.Layer(), "echo 2 > f")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	report, err := txn.Land(ctx)
	if !errors.Is(err, context.Canceled) || report.Landed {
		t.Errorf("landed: %v, %v", report.Landed, err)
	}
	f.host("grep -qx 1 f")
	if left := f.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
}
