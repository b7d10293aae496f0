package sandboxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// role is the first argument of a process that attacks; what it does and the file of its stage follow. Nothing that
// tells one stage from another is in the arguments, since attempts look for that in those of all processes.
const role = "sandboxtest"

// attemptTime bounds one attempt.
const attemptTime = 20 * time.Second

// attempt is what came of one.
type attempt struct {
	Name    string
	Outcome string
	Text    string // the error in full
}

// Main must be called by TestMain before the tests run. In the processes that Run starts it makes the attempts and
// never returns; in every other it returns at once.
func Main() {
	if len(os.Args) < 4 || os.Args[1] != role {
		return
	}
	if err := attack(os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "sandboxtest:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// attack does what a process of this package was started for: "all" probes, each in a process of its own, "witness" to
// be seen, "apart" to make another do something in namespaces of its own, or one probe or step by name.
func attack(what, file string) error {
	if what == "wait" { // until who started it is gone, however that went, and with it the other end of this
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	s, err := readStage(file)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if what == "all" {
		for _, p := range probes() {
			if err := out.Encode(s.process(p.name, nil)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(os.Args) > 4 && os.Args[4] == "apart" {
		if err := settleApart(); err != nil {
			return err
		}
		return out.Encode(s.process(what, nil))
	}
	try := tryOf(what)
	if try == nil {
		return fmt.Errorf("no probe and no step is called %q", what)
	}
	err = try(s)
	a := attempt{Name: what, Outcome: outcomeOf(err)}
	if err != nil {
		a.Text = err.Error()
	}
	return out.Encode(a)
}

func tryOf(name string) func(*stage) error {
	if step := steps()[name]; step != nil {
		return step
	}
	for _, p := range probes() {
		if p.name == name {
			return p.try
		}
	}
	return nil
}

// steps are attempts that probes make in a further process, by name.
func steps() map[string]func(*stage) error {
	return map[string]func(*stage) error{
		"type into the terminal": typeInto,
		"mount over":             mountOver,
		"what this program got":  whatItGot,
		"crash":                  crash,
	}
}

// process makes one attempt in a new process, which edit may change.
func (s *stage) process(name string, edit func(*exec.Cmd)) attempt {
	cmd := s.command(name)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if edit != nil {
		edit(cmd)
	}
	if err := cmd.Start(); err != nil {
		return attempt{name, outcomeOf(err), err.Error()}
	}
	late := time.AfterFunc(attemptTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	var a attempt
	if json.Unmarshal(out.Bytes(), &a) == nil && a.Name == name {
		return a
	}
	return attempt{name, "no answer", fmt.Sprintf("%v: %s%s", err, &out, &complaint)}
}

func (s *stage) command(what string, more ...string) *exec.Cmd {
	return exec.Command(s.Binary, append([]string{role, what, s.File}, more...)...)
}

// step makes one attempt in a new process, and returns what came of it as if it had been made here.
func (s *stage) step(name string, edit func(*exec.Cmd)) error {
	a := s.process(name, edit)
	if a.Outcome == success {
		return nil
	}
	for _, e := range []error{errUnharmed, errNothing, errUngained, errMissing} {
		if e.Error() == a.Outcome {
			return e
		}
	}
	if errno := errnoNamed(a.Outcome); errno != 0 {
		return fmt.Errorf("%w (%s)", errno, a.Text)
	}
	return errors.New(a.Text)
}

func errnoNamed(name string) unix.Errno {
	for e := unix.Errno(1); e < 200; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	return 0
}

// victim is a process that the attempt is aimed at: in a run its process 1, and for a control one that was
// started for it, since no system has a process 1 to spare.
func (s *stage) victim() (pid int, done func(), err error) {
	if s.Inside {
		return 1, func() {}, nil
	}
	cmd := exec.Command(s.Binary, role, "wait", s.File)
	if _, err := cmd.StdinPipe(); err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	go func() { _ = cmd.Wait() }() // reaped as soon as it ends, so that its end can be seen
	return cmd.Process.Pid, func() { _ = cmd.Process.Kill() }, nil
}
