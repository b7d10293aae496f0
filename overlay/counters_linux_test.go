package overlay

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestCounters: two servers, in processes of their own, lose no update of each other.
func TestCounters(t *testing.T) {
	f := onDisk(t, "echo 0 > one; echo 0 > two")
	run(t, f.begin().Layer(), "true")
	runs := max(5, *raceRuns/4)
	var sum [2]int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			out, err := server(t, f.dir, f.state, "count", fmt.Sprint("s", i), fmt.Sprint(runs)).Output()
			var one, two int
			if n, scan := fmt.Sscan(string(out), &one, &two); err != nil || n != 2 {
				t.Errorf("server %d: %v, %v: %q", i, err, scan, out)
			}
			mu.Lock()
			defer mu.Unlock()
			sum[0] += one
			sum[1] += two
		})
	}
	wg.Wait()
	for i, name := range []string{"one", "two"} {
		b, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		beside := strings.Fields(f.host("ls | grep -c '^" + name + ".conflict-' || true"))[0]
		t.Logf("%s: %d of %d runs landed, %s conflicts, it is %.5q", name, sum[i], 2*runs, beside, b)
		if got := strings.Fields(string(b))[0]; got != fmt.Sprint(sum[i]) {
			t.Errorf("%s is %s after %d landings", name, got, sum[i])
		}
		if beside != fmt.Sprint(2*runs-sum[i]) || sum[i] == 0 {
			t.Errorf("%s: %d of %d landed, and %s are beside", name, sum[i], 2*runs, beside)
		}
	}
}

// tryRun is run for where the test can't be ended.
func tryRun(l Layer, script string) error {
	cmd := runCommand([]Layer{l}, script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("script: %w: %s", err, out.String())
	}
	return nil
}

// countUp is a server that adds one to two counters, RUNS times, and says how often each landed.
func countUp(w *Workspace, name string, runs int) {
	landed := map[string]int{}
	for i := range runs {
		txn, err := w.Begin(context.Background(), fmt.Sprintf("%sx%d", name, i))
		must(err)
		// The second line is its own, so that two that come to the same number have not the same outcome.
		must(tryRun(txn.Layer(), fmt.Sprintf(`for c in one two; do
				read n < $c; sleep 0.00%d; printf '%%d\n%s %d\n' $((n+1)) > $c
			done`, rand.IntN(10), name, i)))
		report, err := txn.Land(context.Background())
		must(err)
		for _, p := range report.Modified {
			landed[p]++
		}
		if len(report.Modified)+len(report.Conflicts) != 2 {
			must(fmt.Errorf("%+v", report))
		}
	}
	fmt.Println(landed["one"], landed["two"])
}
