package overlay

import (
	"context"
	"flag"
)

var everyReview = flag.Bool("every-review", false, "go through a review with everything that lands directly in the tests, not with some")

// park makes a run wait, or not, if it changed nothing.
func (f *fixture) park(txn *Txn) Report {
	f.t.Helper()
	report, err := txn.Park(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	return report
}

// reviewed lands what waits, if it does.
func (f *fixture) reviewed(parked Report) Report {
	f.t.Helper()
	if parked.Waiting == "" {
		return parked
	}
	report, err := f.LandWaiting(context.Background(), parked.Waiting)
	if err != nil {
		f.t.Fatal(err)
	}
	return report
}
