package overlay

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test binary is also a server: it opens a workspace and either dies in the middle of a run or
// lands one run after the other.

const asServer = "airlock-overlay-test-server"

func serve() {
	dir, state, what := os.Args[1], os.Args[2], os.Args[3]
	w, err := Open(dir, state, Defaults())
	must(err)
	ctx := context.Background()
	switch what {
	case "hang", "hang-landing":
		txn, err := w.Begin(ctx, "dead")
		must(err)
		must(os.MkdirAll(filepath.Join(txn.Layer().Upper, "a/b"), 0o755))
		must(os.Chmod(filepath.Join(txn.Layer().Upper, "a"), 0o555))
		must(os.MkdirAll(filepath.Join(txn.Layer().Work, "work"), 0))
		if what == "hang-landing" {
			// A journal that can't be acted on: it speaks of another directory.
			l := txn.lander(plan{})
			r, err := l.record("")
			must(err)
			r.Root.Ino++
			must(w.writeJournal(r))
			must(os.WriteFile(filepath.Join(txn.landing.path, "1"), []byte("precious\n"), 0o644))
		}
		fmt.Println("ready")
		select {}
	case "count":
		runs, err := strconv.Atoi(os.Args[5])
		must(err)
		countUp(w, os.Args[4], runs)
		must(w.Close())
	default: // lands a file of its own and one that all write, many times
		for i := range 25 {
			txn, err := w.Begin(ctx, fmt.Sprintf("%sx%d", what, i))
			must(err)
			// A copy of a directory has an origin; without one it counts as new, which is the same here.
			upper := txn.Layer().Upper
			must(os.Mkdir(filepath.Join(upper, "d"), 0o755))
			must(os.WriteFile(filepath.Join(upper, "d", what), []byte(strconv.Itoa(i)), 0o644))
			must(os.WriteFile(filepath.Join(upper, "d", fmt.Sprintf("%s-%d", what, i)), []byte(what), 0o644))
			must(os.WriteFile(filepath.Join(upper, "all"), fmt.Appendf(nil, "%s-%d", what, i), 0o644))
			report, err := txn.Land(ctx)
			must(err)
			for _, c := range report.Conflicts {
				fmt.Println(c.Path)
			}
		}
		must(w.Close())
	}
	os.Exit(0)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func server(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = append([]string{asServer}, args...)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKilledServer: the next start removes what a killed server left, and nothing of a living one;
// of a landing that was cut off and can't be taken back it keeps what may be the only copy.
func TestKilledServer(t *testing.T) {
	f := onDisk(t, "echo 1 > a")
	living := f.begin()
	for _, what := range []string{"hang", "hang-landing"} {
		cmd := server(t, f.dir, f.state, what)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("server: %q, %v", line, err)
		}
		count := func() int {
			names, err := f.scratch.base.list("")
			if err != nil {
				t.Fatal(err)
			}
			return len(names)
		}
		if got := count(); got != 3 { // the lock and two servers
			t.Fatalf("%d entries in the scratch", got)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		w, err := Open(f.dir, f.state, Defaults())
		if err != nil {
			t.Fatal(err)
		}
		kept := w.Interrupted()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if what == "hang" {
			if got := count(); got != 2 || len(kept) > 0 {
				t.Errorf("%d entries in the scratch, kept %v", got, kept)
			}
			continue
		}
		if len(kept) != 1 {
			t.Fatalf("kept %v", kept)
		}
		if b, err := os.ReadFile(filepath.Join(kept[0], "landing", "1")); string(b) != "precious\n" {
			t.Errorf("in %s: %q, %v", kept[0], b, err)
		}
	}
	if report := f.land(living); !report.Landed {
		t.Error("the living server's run is gone")
	}
}

// TestServers: landings of several processes never tear, lose or mix up anything.
func TestServers(t *testing.T) {
	f := onDisk(t, "mkdir d; echo 0 > all")
	var wg sync.WaitGroup
	conflicts := make([]string, 3)
	for i := range conflicts {
		wg.Go(func() {
			out, err := server(t, f.dir, f.state, fmt.Sprintf("s%d", i)).Output()
			if err != nil {
				t.Error(err)
			}
			conflicts[i] = string(out)
		})
	}
	wg.Wait()
	for i, out := range conflicts {
		for path := range strings.Lines(out) {
			if path != "all\n" {
				t.Errorf("server %d has a conflict on %s", i, path)
			}
		}
		name := fmt.Sprintf("s%d", i)
		if b, err := os.ReadFile(filepath.Join(f.dir, "d", name)); string(b) != "24" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	// Every version of what all wrote was either replaced by a later run that had seen it, or kept.
	if got := f.host("ls d | wc -l"); strings.TrimSpace(got) != strconv.Itoa(3*26) {
		t.Errorf("%s files in d", got)
	}
	if left := f.host("find . -name '.airlock*'"); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestOverlappingModes: a landing that goes over a directory does not take back the mode that another
// gave it meanwhile.
func TestOverlappingModes(t *testing.T) {
	f := onDisk(t, "mkdir d; chmod 755 d; echo 1 > d/x; echo 1 > d/y")
	first, second := f.begin(), f.begin()
	run(t, first.Layer(), "chmod 700 d; echo first > d/x")
	run(t, second.Layer(), "echo second > d/y")
	f.land(first)
	report := f.land(second)
	want := Report{Landed: true, Modified: []string{"d/y"}, Conflicts: []Conflict{{Path: "d"}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.host("test $(stat -c %a d) = 700; grep -qx first d/x; grep -qx second d/y")
}
