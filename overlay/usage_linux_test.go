package overlay

import (
	"context"
	"strings"
	"testing"
)

// TestUsageOfDeepTrees: what lies deeper than a path can name is measured, and hides nothing beside it.
func TestUsageOfDeepTrees(t *testing.T) {
	f := onDisk(t, "")
	txn := f.begin()
	run(t, txn.Layer(), `mkdir z; head -c 1000000 /dev/zero > z/beside; mkdir a; cd a
		d=`+strings.Repeat("d", 200)+`; for i in $(seq 60); do mkdir $d; cd -P $d; done
		head -c 2000000 /dev/zero > deep; mkdir shut; head -c 3000000 /dev/zero > shut/in; chmod 0 shut`)
	used, err := txn.Usage(context.Background())
	if err != nil || used < 3e6 {
		t.Errorf("while the run goes on: %d bytes, %v", used, err)
	}
	used, err = txn.FinalUsage(context.Background())
	if err != nil || used < 6e6 || used > 9e6 {
		t.Errorf("at the end: %d bytes, %v", used, err)
	}
	report := f.land(txn)
	if len(report.Added) != 1 || report.Added[0] != "z/beside" || len(report.Withheld) != 1 || report.Withheld[0].Why != "path too long" {
		t.Errorf("added %q, withheld %d", report.Added, len(report.Withheld))
	}
}

// TestUsageOfEmptyFiles: what has no blocks counts too, since inodes are as scarce.
func TestUsageOfEmptyFiles(t *testing.T) {
	f := onDisk(t, "")
	txn := f.begin()
	run(t, txn.Layer(), "for i in $(seq 100); do : > $i; done; for i in $(seq 100); do ln 1 name$i; done")
	if used, err := txn.FinalUsage(context.Background()); err != nil || used != 100*inodeCost {
		t.Errorf("%d bytes, %v", used, err)
	}
	f.land(txn)
}
