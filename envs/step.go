package envs

import (
	"context"
	_ "embed" // the driver
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// Installer runs the steps of an installation, each in a sandbox that ends with it: this package runs
// nothing itself.
type Installer interface {
	// Run executes a step. The error is for a sandbox that can't be had; whatever became of the step's
	// program is an Outcome.
	Run(ctx context.Context, s Step) (Outcome, error)
}

// Step is one program of an installation. It sees the system's programs and its binds; it has no home
// directory, no workspace, and no variables but Env.
type Step struct {
	Name string // "probe", "resolve", "fetch" or "install"
	Argv []string
	Env  []string
	Dir  string
	// Binds are directories of the host that it sees.
	Binds []Bind
	// Show are paths of the host that it sees at their own place: those of an interpreter.
	Show []string
	// Network lets it reach the index and what packages.hosts names; else it has none.
	Network bool
}

// Bind is a directory of the host that a step sees at Target.
type Bind struct {
	Source, Target string
	Writable       bool
}

// Outcome says how a step ended.
type Outcome struct {
	Code int
	// Ended says what ended it where it did not end by itself: "timeout", "limit disk"; "" if it did.
	Ended string
	// Output is what it printed, shortened.
	Output string
	// Refused are the destinations that the network refused it, each with the reason.
	Refused []string
	// Unreached says of each destination that it was allowed and never reached why that is so.
	Unreached []string
}

//go:embed driver.py
var driver string

// maxAnswer bounds what a step may leave in its answer. It is hostile: an index decides what is in it.
const maxAnswer = 32 << 20

// driverRequest is what the driver is given.
type driverRequest struct {
	Pip   string   `json:"pip,omitempty"`
	Index string   `json:"index,omitempty"`
	Cert  string   `json:"cert,omitempty"`
	Site  string   `json:"site,omitempty"`
	Have  []string `json:"have,omitempty"`
}

// certPath is where a step sees packages.cert.
const certPath = "/run/airlock/index.pem"

// drivePython runs the Python driver. The lines are what requirements.txt holds.
func (s *Store) drivePython(ctx context.Context, in Installer, w *work, step Step, r driverRequest, lines []string, answer any) (Outcome, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return Outcome{}, err
	}
	step.Argv = append(step.Argv, "-I", "-B", "-c", driver, step.Name)
	// Ambient PIP_ variables and files redirect installs; there are none. The rest is what keeps a
	// package's metadata readable whatever the host's locale is.
	step.Env = []string{"PYTHONUTF8=1", "PYTHONDONTWRITEBYTECODE=1", "PIP_CONFIG_FILE=/dev/null", "PIP_BREAK_SYSTEM_PACKAGES=1"}
	return s.drive(ctx, in, w, step, map[string]string{"request.json": string(text), "requirements.txt": strings.Join(lines, "\n") + "\n"}, answer)
}

// drive runs a step in a directory of w that has these files, and decodes its answer.
func (s *Store) drive(ctx context.Context, in Installer, w *work, step Step, files map[string]string, answer any) (Outcome, error) {
	build := filepath.Join(w.dir, step.Name)
	if err := os.Mkdir(build, 0o755); err != nil {
		return Outcome{}, err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(build, name), []byte(content), 0o644); err != nil {
			return Outcome{}, err
		}
	}
	for _, dir := range []string{"tmp", "wheels"} {
		if err := os.Mkdir(filepath.Join(build, dir), 0o755); err != nil {
			return Outcome{}, err
		}
	}
	step.Dir = "/build"
	step.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", "LANG=C.UTF-8", "TMPDIR=/build/tmp"}, step.Env...)
	step.Binds = append(step.Binds, Bind{Source: build, Target: "/build", Writable: true})
	out, err := in.Run(ctx, step)
	if err != nil {
		return out, err
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if out.Ended != "" || out.Code != 0 {
		return out, &StepError{Step: step.Name, Outcome: out}
	}
	return out, readAnswer(build, answer)
}

// fetchedTo is the directory that a step fetched to, now that it has ended. The step could put a link there, which would
// lead to files of the host's.
func (w *work) fetchedTo(step string) (string, error) {
	dir := filepath.Join(w.dir, step, "wheels")
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("the installer left no directory of what it fetched")
	}
	return dir, err
}

// readAnswer reads what the step left. The step could replace the file by anything.
func readAnswer(build string, answer any) error {
	f, err := openRegular(filepath.Join(build, "answer.json"))
	if err != nil {
		return fmt.Errorf("the installer left no answer: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(text) > maxAnswer {
		return fmt.Errorf("the installer's answer is longer than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return errors.New("the installer's answer can't be read")
	}
	return nil
}

// StepError says that a step of an installation failed.
type StepError struct {
	Step    string
	Outcome Outcome
}

// unreachedHint is the way out where an index was not reached.
const unreachedHint = " (the user can set packages.index, or packages.r.repo, to one that is reached from here, network.upstream to the proxy that " +
	"leads out, and network.resolve for a name that nobody resolves)"

// Error gives the cause: what the network refused first, since an installer takes that for a package that
// does not exist.
func (e *StepError) Error() string {
	doing := map[string]string{
		"probe": "the interpreter could not be asked what it is", "resolve": "the packages could not be resolved",
		"fetch": "the packages could not be fetched", "install": "the packages could not be installed",
	}[e.Step]
	if len(e.Outcome.Refused) > 0 {
		doing += ": the network refused " + strings.Join(e.Outcome.Refused, ", ")
	}
	if len(e.Outcome.Unreached) > 0 {
		// What the installer says of it is that there is no such package, or that the way out answered.
		doing += ": " + clip(strings.Join(e.Outcome.Unreached, "; "), 1000) + unreachedHint
		if e.Outcome.Ended == "" {
			return doing
		}
	}
	if e.Outcome.Ended != "" {
		return doing + ": it was ended (" + e.Outcome.Ended + ")"
	}
	if said := complaint(e.Outcome.Output); said != "" {
		return doing + ": " + said
	}
	return doing
}

// errorLine is how pip, Python and R begin to say what went wrong.
var errorLine = pattern.Lazy(`^(?:(?:ERROR|error|[A-Za-z.]*Error):|Error (?:in .{1,200}?)?:) ?`)

// complaint picks from what an installer printed what it says went wrong.
func complaint(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line == conflict {
			// What follows is the whole of it; what was said before names lines of our own file.
			return clip(strings.Join(paragraph(after(output, conflict)), "; "), 1000)
		}
		if m := errorLine().FindString(line); m != "" {
			if strings.HasPrefix(strings.ToLower(m), "error:") {
				line = strings.TrimPrefix(line, m)
			}
			if line != "Exception:" && !slices.Contains(said, line) { // what pip failed of stands at the end of what follows
				said = append(said, line)
			}
		}
	}
	if len(said) == 0 {
		said = []string{strings.TrimSpace(lastLines(output, 3))}
	}
	return clip(strings.Join(said, "; "), 1000)
}

// conflict is how pip begins to say which requirements exclude each other.
const conflict = "The conflict is caused by:"

// after gives what follows a text.
func after(s, text string) string {
	_, rest, _ := strings.Cut(s, text)
	return strings.TrimLeft(rest, "\r\n")
}

// paragraph gives the lines up to the first empty one.
func paragraph(s string) []string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		lines = append(lines, line)
	}
	return lines
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
