package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"airlock/envs"
	"airlock/internal/control"
	"airlock/overlay"
	"airlock/sandbox"
)

var update = flag.Bool("update", false, "write testdata/terminal as it is now")

// A capture is what a person sees of a command in a terminal: testdata/terminal/NAME.txtar has it in colour at two widths, in a terminal
// that is asked for no colours, and as a pipe gets it. In it {bold} and its like stand for a terminal's colours and {/} for their end.
var captures = []struct {
	name    string
	columns int
	colour  bool
}{
	{"80 columns", 80, true},
	{"120 columns", 120, true},
	{"80 columns, NO_COLOR", 80, false},
	{"piped", 0, false},
}

// screen is where one of them is taken, with a home and a workspace of its own.
type screen struct {
	t       *testing.T
	columns int
	colour  bool
	root    string // as long as rootShown, since lines are folded by their length
	home    string
	ws      string
}

// rootShown stands for a screen's root in a capture.
const rootShown = "/home/you/place"

func newScreen(t *testing.T, columns int, colour bool) *screen {
	t.Helper()
	s := &screen{t: t, columns: columns, colour: colour}
	for i := range 1000 {
		s.root = fmt.Sprintf("/tmp/%-0*d", len(rootShown)-len("/tmp/"), 1_000_000_000+int64(os.Getpid())*1000+int64(i))
		err := os.Mkdir(s.root, 0o755)
		if err == nil {
			break
		} else if !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	if len(s.root) != len(rootShown) {
		t.Fatalf("bug: %s is not as long as %s", s.root, rootShown)
	}
	t.Cleanup(func() { os.RemoveAll(s.root) })
	s.home, s.ws = filepath.Join(s.root, "home"), filepath.Join(s.root, "app")
	for _, dir := range []string{s.home, s.ws} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *screen) write(name, text string) {
	s.t.Helper()
	name = filepath.Join(s.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) environ() []string {
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "TERM=xterm", "TZ=UTC", "HOME=" + s.home,
		"XDG_STATE_HOME=" + filepath.Join(s.home, ".state"), "XDG_CONFIG_HOME=" + filepath.Join(s.home, ".config"),
	}
	if !s.colour {
		environ = append(environ, "NO_COLOR=1")
	}
	return environ
}

// command gives what somebody who types a command line sees, the line itself first.
func (s *screen) command(args ...string) string {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	typed := "$ airlock"
	for _, arg := range args {
		typed += " " + shellWord(arg)
	}
	status := 0
	seen := s.shows(func(out *os.File) {
		cmd := exec.Cmd{Path: self, Args: append([]string{"airlock"}, args...), Dir: s.ws, Env: s.environ(), Stdout: out, Stderr: out}
		err := cmd.Run()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			status = exit.ExitCode()
		} else if err != nil {
			s.t.Error(err)
		}
	})
	if status != 0 {
		seen += fmt.Sprintf("(exit status %d)\n", status)
	}
	return typed + "\n" + seen
}

// shows gives what write makes appear on the screen.
func (s *screen) shows(write func(out *os.File)) string {
	s.t.Helper()
	var in, out *os.File
	var err error
	if s.columns == 0 {
		if in, out, err = os.Pipe(); err != nil {
			s.t.Fatal(err)
		}
	} else {
		in, out = pseudoTerminal(s.t, s.columns)
	}
	defer in.Close()
	got := make(chan []byte, 1)
	go func() {
		var all bytes.Buffer
		_, _ = io.Copy(&all, in) // of a terminal that nobody has any more: EIO
		got <- all.Bytes()
	}()
	write(out)
	out.Close()
	return s.normal(string(<-got))
}

// pseudoTerminal opens both sides of one.
func pseudoTerminal(t *testing.T, columns int) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: uint16(columns)}))
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		t.Fatal(err)
	}
	return master, slave
}

var (
	hostNote = regexp.MustCompile(`(?m)^airlock: note: .*\n(?:      .*\n)*`) // what this host can't hold, in as many lines as that takes
	clock    = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d:\d\d`)
	someID   = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	colours  = strings.NewReplacer("\x1b[31m", "{red}", "\x1b[32m", "{green}", "\x1b[33m", "{yellow}", "\x1b[36m", "{cyan}", "\x1b[1m", "{bold}", "\x1b[0m", "{/}", "\x1b", "ESC")
)

// normal makes what differs from one time to the next alike, and keeps its length.
func (s *screen) normal(seen string) string {
	seen = strings.ReplaceAll(seen, "\r\n", "\n")
	seen = hostNote.ReplaceAllString(seen, "")
	seen = strings.ReplaceAll(seen, s.root, rootShown)
	seen = clock.ReplaceAllString(seen, "2026-01-31 12:34:56")
	return someID.ReplaceAllString(colours.Replace(seen), "1a2b3c4d")
}

// check compares captures with the golden file of that name.
func checkCaptures(t *testing.T, name string, take func(s *screen) string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var got txtar.Archive
		for _, c := range captures {
			got.Files = append(got.Files, txtar.File{Name: c.name, Data: []byte(take(newScreen(t, c.columns, c.colour)))})
		}
		file := filepath.Join("testdata", "terminal", name+".txtar")
		if *update {
			if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(txtar.Format(&got))); d != "" {
			t.Errorf("-want +got (-update writes it anew):\n%s", d)
		}
	})
}

// TestCaptures keeps what the commands for people look like. A change of it is seen in review.
func TestCaptures(t *testing.T) {
	checkCaptures(t, "doctor", func(s *screen) string {
		var all []string
		for _, d := range hosts() {
			all = append(all, s.shows(func(out *os.File) {
				a := app{stdout: out, environ: s.environ()}
				if err := d.print(out, a.paint(), a.columns()); err != nil {
					t.Error(err)
				}
			}))
		}
		return strings.Join(all, "----------------------------------------\n")
	})
	checkCaptures(t, "ps", func(s *screen) string {
		now := time.Now()
		return s.shows(func(out *os.File) {
			a := app{stdout: out, environ: s.environ()}
			if err := printRuns(out, a.columns(), []control.Run{
				{ID: "5b0c77aa", Since: now.Add(-83 * time.Second), State: "running", Workspace: rootShown + "/app", Tool: "run_shell", What: "make -j8 test"},
				{ID: "0e6f2d19", Since: now.Add(-12 * time.Second), State: "waiting", Workspace: rootShown + "/app", Tool: "run_python", What: "import collections, json, pathlib, statistics, sys\nfor path in pathlib.Path('.').rglob('*.json'):\n    print(path)"},
				{ID: "77aa5b0c", Since: now.Add(-2 * time.Hour), State: "running", Workspace: rootShown + "/another-project", Tool: "package_install", What: "numpy>=1.26, pandas"},
			}, now); err != nil {
				t.Error(err)
			}
		})
	})
	checkCaptures(t, "requests", func(s *screen) string {
		none := s.command("requests")
		s.packages()
		return none + s.command("requests") + s.command("deny", "00000000")
	})
	checkCaptures(t, "envs", func(s *screen) string {
		none := s.command("envs")
		s.packages()
		return none + s.command("envs") + s.command("envs", "remove", "numpy") + s.command("envs", "remove", "default") + s.command("envs")
	})
	checkCaptures(t, "faults", func(s *screen) string {
		s.write("home/.config/airlock/config.toml", "[sandbox]\nread = [\"data\"]\n\n[netwrok]\nallow = [\"pypi.org\"]\n")
		return s.command("run", "make") + s.command("lgo") + s.command("run") + s.command("client", "vscod")
	})
	if err := sandboxHere(); err != nil {
		if strings.Contains(","+*require+",", ",userns,") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	checkCaptures(t, "run", func(s *screen) string {
		s.write("app/notes.txt", "one\ntwo\nthree\n")
		s.write("app/old.txt", "gone soon\n")
		return s.command("log") + s.command("diff") +
			s.command("run", "sed -i s/two/2/ notes.txt; rm old.txt; mkdir -p src; echo 'print(1)' > src/main.py; echo built") +
			s.command("run", "echo half > notes.txt; echo 'no such target' >&2; exit 2") +
			s.command("run", "--timeout", "1s", "--", "sleep", "5") +
			s.command("run", "echo 'use flake' > .envrc; echo four >> notes.txt") +
			s.command("run", "for i in $(seq -w 13); do echo $i > module-$i-with-a-rather-long-name.txt; done") +
			s.command("run", "true") +
			s.command("log") + s.command("undo") + s.command("run", "sed -i s/three/3/ notes.txt; printf '\\0' > data.bin; chmod +x src/main.py") + s.command("diff") + s.command("log")
	})
	checkCaptures(t, "review", func(s *screen) string {
		s.write("home/.config/airlock/config.toml", "[workspace]\nland_on = \"review\"\n")
		s.write("app/notes.txt", "one\ntwo\nthree\n")
		return s.command("run", "sed -i s/two/2/ notes.txt; echo new > new.txt") +
			s.command("log") + s.command("diff") + s.command("land") + s.command("land") + s.command("clean", "--dry-run") + s.command("clean")
	})
}

// packages puts requests, environments and a grant into the state directory.
func (s *screen) packages() {
	s.t.Helper()
	digest := strings.Repeat("ab", 32)
	s.write("home/.state/airlock/envs/environments/default.json", `{"name":"default","language":"python","generation":2,"python":"cpython-3.12 linux x86_64","roots":["numpy","six"],
"layers":["`+digest+`"],"packages":[{"name":"numpy","version":"2.1.3","sha256":"`+digest+`","wheel":"numpy-2.1.3-cp312-cp312-manylinux_2_17_x86_64.whl","size":16300000},
{"name":"six","version":"1.17.0","sha256":"`+digest+`","wheel":"six-1.17.0-py2.py3-none-any.whl","size":11050}]}`)
	store, err := envs.OpenStore(filepath.Join(s.home, ".state", "airlock", "envs"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx := context.Background()
	for i, r := range []envs.Request{
		{
			Environment: "default", Language: "python", Index: "https://pypi.org/simple", Asked: []string{"pandas>=2"}, Names: []string{"pandas", "pytz"},
			Question: "Install 2 packages into the Python environment \"default\" (13.2 MiB)?\nFrom https://pypi.org/simple\n  pandas 2.2.3, 12.7 MiB\n  pytz 2024.2, 508 KiB, needed by pandas\n" +
				"Asked for: pandas>=2\nThe model's reason: \"to read the spreadsheet that you put into the workspace, and to group its rows by month and by customer\"",
			Reason: "to read the spreadsheet",
		},
		{
			Environment: "plots", Language: "python", Index: "https://pypi.org/simple", Asked: []string{"requestz"}, Names: []string{"requestz"},
			Question: "Install 1 package into the Python environment \"plots\"?\nFrom https://pypi.org/simple\n  requestz 0.1, NOT requests, which is allowed: the names differ\nAsked for: requestz\nThis changes what is there.",
		},
	} {
		r.ID, r.Digest = fmt.Sprintf("5b0c77a%d", i), fmt.Sprintf("%064x", i+1)
		r.Created, r.State = time.Now().Add(time.Duration(i)*time.Minute), []string{envs.Waiting, envs.Denied}[i]
		text, err := json.Marshal(r)
		if err != nil {
			s.t.Fatal(err)
		}
		s.write("home/.state/airlock/envs/requests/"+r.ID+".json", string(text))
	}
	if err := store.Grant(ctx, envs.Grant{ID: "7f3a09c1", Created: time.Now(), Environment: "default", Index: "https://pypi.org/simple", Names: []string{"six", "numpy"}}); err != nil {
		s.t.Fatal(err)
	}
}

// hosts are what doctor finds on three of them: all is well, some of it is watched, nothing can run.
func hosts() []diagnosis {
	const unshare = "user namespaces"
	return []diagnosis{
		{
			Possible: true, Backend: "native", Why: "it needs nothing that is installed",
			Checks: []check{
				{Name: unshare, Promise: "runs are isolated", OK: true, Detail: "can be created"},
				{Name: "network", Promise: "runs reach the hosts that network allows", OK: true, Detail: "connections and names are redirected (nf_tables)"},
			},
			Held: map[string]string{"processes": "cgroup v2", "memory": "cgroup v2", "cpu": "cgroup v2", "files": "rlimit", "disk": sandbox.Watched},
		},
		{
			Possible: true, Backend: "bwrap", Root: true, Refused: []refused{{"native", "sandbox: create namespaces: user namespaces are not available: operation not permitted"}},
			Checks: []check{
				{Name: unshare, Promise: "runs are isolated", Detail: "operation not permitted", Mend: "sysctl kernel.apparmor_restrict_unprivileged_userns=0 allows them to every program; or install bubblewrap, which has a profile"},
				{Name: "cgroup", Promise: "a run can't take the host's memory", Detail: "no cgroup is delegated to this user", Mend: "start the client by systemd-run --user --scope -p Delegate=yes"},
			},
			Held:    map[string]string{"processes": "rlimit", "memory": sandbox.Watched, "cpu": sandbox.Affinity, "files": "rlimit", "disk": sandbox.Watched},
			Waiting: []waitingRuns{{Workspace: overlay.Literal(rootShown + "/app"), Runs: []string{"5b0c77aa", "77aa5b0c"}, Bytes: 1 << 20}},
		},
		{
			Backend: "auto", Cause: "native: sandbox: create namespaces: user namespaces are not available: no space left on device; bwrap: not installed",
			Mend:   "sysctl user.max_user_namespaces=10000, or install bubblewrap",
			Checks: []check{{Name: unshare, Promise: "runs are isolated", Detail: "no space left on device: user.max_user_namespaces is 0", Mend: "sysctl user.max_user_namespaces=10000"}},
		},
	}
}
