package overlay

import (
	"strings"
	"testing"
)

// A file that another run removed, or an undo took away, while a run changed it does not come back by itself: what
// our own landings remove is a removal by someone else, to a run that goes on.
func TestRemovedMeanwhileByARun(t *testing.T) {
	removals := map[string]string{
		"removed": "rm d/f",
		"moved":   "mv d/f d/moved",
		"undone":  "",
	}
	changes := map[string]string{
		"appended":  "echo more >> d/f",
		"truncated": "echo other > d/f",
		"mode":      "chmod 600 d/f",
		"anew":      "rm d/f; echo other > d/f",
		"linked":    "rm d/f; ln -s x d/f",
	}
	for how, removal := range removals {
		for what, change := range changes {
			for _, review := range []bool{false, true} {
				name := how + " " + what
				if review && what != "anew" {
					continue
				}
				if review {
					name += ", reviewed"
				}
				t.Run(name, func(t *testing.T) {
					f := onDisk(t, "mkdir d; echo 1 > d/other")
					f.landed("echo 1 > d/f", "")
					txn := f.begin()
					runOn(t, txn.Layers(), change)
					if removal == "" {
						f.undo("")
					} else {
						other := f.begin()
						runOn(t, other.Layers(), removal)
						f.land(other)
					}
					var report Report
					if review {
						report = f.reviewed(f.park(txn))
					} else {
						report = f.land(txn)
					}
					if len(report.Conflicts) != 1 || report.Conflicts[0].Path != "d/f" {
						t.Errorf("%s", report.Summary())
					}
					if names := f.host("ls d"); strings.Contains(names, "f\n") {
						t.Errorf("it is back: %s", names)
					}
				})
			}
		}
	}
}

// A name that our own landing removed before the run began is free, and so is one beside it.
func TestRemovedBeforeARun(t *testing.T) {
	f := onDisk(t, "mkdir d; echo 1 > d/f")
	for range 20 {
		f.landed("rm d/f", "")
		f.landed("echo 1 > d/f", "")
	}
	txn := f.begin()
	runOn(t, txn.Layers(), "echo 1 > d/new; mv d/f d/g; echo 2 >> d/g")
	f.landed("echo 1 > d/gone", "")
	f.landed("rm d/gone", "")
	if report := f.land(txn); len(report.Conflicts) > 0 {
		t.Error(report.Summary())
	}
}
