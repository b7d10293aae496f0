package overlay

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// made waits until n directories have been made ahead, and gives their names, separated by spaces.
func (f *fixture) made(n int) string {
	f.t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		f.scratch.beside.mu.Lock()
		names := slices.Clone(f.scratch.beside.ahead)
		f.scratch.beside.mu.Unlock()
		if len(names) == n {
			return strings.Join(names, " ")
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d directories were to be made ahead; there are %q", n, f.leftovers())
		}
	}
}

// A layer whose directories were made ahead is as one that was made for the run.
func TestMadeAhead(t *testing.T) {
	f := onDisk(t, "echo 1 >f")
	f.RemoveBeside()
	for round, mode := range []string{"750", "700", "2770"} {
		ahead := f.made(1)
		if got := f.leftovers(); got != ahead {
			t.Errorf("round %d: beside %s there are %q", round, ahead, got)
		}
		f.host("chmod " + mode + " .") // after it was made
		txn := f.begin()
		if got := f.leftovers(); got != txn.run {
			t.Errorf("round %d: a run has begun, and there are %q", round, got)
		}
		runOn(t, txn.Layers(), "test $(stat -c '%a.%u:%g' .) = "+mode+".$(stat -c %u:%g f); echo 2 >>f; echo new >n"+mode)
		report, err := txn.Land(t.Context())
		if err != nil || !report.Landed || len(report.Withheld) > 0 {
			t.Fatalf("round %d: %+v, %v", round, report, err)
		}
	}
	if got := f.host("cat f; ls"); got != "1\n2\n2\n2\nf\nn2770\nn700\nn750\n" {
		t.Errorf("the workspace has %q", got)
	}
	f.made(1)
	f.restart()
	if got := f.host("find $BASE -name 'ahead-*'"); strings.TrimSpace(got) != "" {
		t.Errorf("left: %s", got)
	}
}

// A run whose id is taken is refused, although a directory waits.
func TestMadeAheadForATakenID(t *testing.T) {
	f := onDisk(t, "echo 1 >f")
	f.RemoveBeside()
	f.made(1)
	txn := f.begin()
	f.scratch.beside.makeAhead(f.scratch.server, f.scratch.mode)
	if _, err := f.Begin(t.Context(), txn.run); err == nil {
		t.Error("a second run has the same id")
	}
	if _, err := txn.Discard("test"); err != nil {
		t.Error(err)
	}
}

// Where runs begin at once, as many more directories are made ahead from then on as were missing, up to a bound.
func TestMadeAheadForSeveral(t *testing.T) {
	f := onDisk(t, "echo 1 >f")
	f.RemoveBeside()
	for _, there := range []int{1, 3, 5, 7, maxAhead, maxAhead} {
		f.made(there)
		f.scratch.beside.going.Wait() // or another is made between two begins
		var txns []*Txn
		for range there + 2 {
			txns = append(txns, f.begin())
		}
		for _, txn := range txns {
			if _, err := txn.Discard("test"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What could not be made is tried again after the next run, under another name.
func TestMadeAheadAfterAFailure(t *testing.T) {
	f := onDisk(t, "echo 1 >f")
	b := &beside{directories: []string{"missing/upper"}}
	b.makeAhead(f.scratch.server, f.scratch.mode)
	if len(b.ahead) != 0 {
		t.Fatalf("made: %q", b.ahead)
	}
	b.directories = []string{"upper"}
	b.makeAhead(f.scratch.server, f.scratch.mode)
	if got := strings.Join(b.ahead, " "); got != "ahead-2" {
		t.Errorf("made: %q", got)
	}
}
