package sandboxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"airlock/sandbox"
)

// Run has one run of backend make every attempt of the table, makes the controls, and judges each probe in a
// subtest of its name.
func Run(t *testing.T, backend sandbox.Backend, o Options) {
	t.Helper()
	if backend.Unconfined() {
		t.Fatalf("the backend %s confines nothing, and says so", backend.Name())
	}
	table := probes()
	for name := range o.Except {
		if !slices.ContainsFunc(table, func(p probe) bool { return p.name == name }) {
			t.Errorf("Options.Except names %q, which is no probe", name)
		}
	}
	s := setStage(t)
	s.giveAway(t, o)
	got := s.inRun(t, backend, o)
	for _, p := range table {
		t.Run(p.name, func(t *testing.T) { judge(t, s, p, got[p.name], o) })
	}
}

// judge compares an attempt in the run with what the table says, and shows that it could have got through.
func judge(t *testing.T, s *stage, p probe, inRun attempt, o Options) {
	holds := among(inRun.Outcome, p.held)
	reason, known := o.Except[p.name]
	switch {
	case holds && known:
		t.Errorf("it holds, and Options.Except says that it doesn't: %s", reason)
	case !holds && known:
		t.Logf("not held by this backend: %s (%s)", reason, inRun.Text)
	case !holds:
		t.Errorf("in a run: %s (%s), want %s", inRun.Outcome, inRun.Text, strings.Join(outcomes(p.held), " or "))
	}
	if p.control == nowhere {
		t.Logf("no control: %s", p.why)
		return
	}
	if p.control == asRoot && os.Geteuid() != 0 {
		t.Logf("no control: only root may do it on the host, and this test is not root")
		return
	}
	control := s.control(p)
	if control.Outcome == success || among(control.Outcome, p.beyond) {
		return
	}
	if among(control.Outcome, p.absent) {
		t.Logf("no control: outside the same attempt got %s: %s", control.Outcome, p.why)
		return
	}
	o.lacks(t, "controls", fmt.Sprintf("outside the same attempt got %s (%s), so that the probe shows nothing",
		control.Outcome, tail(control.Text)))
}

// inRun has a run of the backend make all attempts.
func (s *stage) inRun(t *testing.T, backend sandbox.Backend, o Options) map[string]attempt {
	t.Helper()
	spec := s.spec(t, o)
	if o.Edit != nil {
		o.Edit(&spec)
	}
	var out bytes.Buffer
	p, err := backend.Start(t.Context(), spec, sandbox.Stdio{Output: &out})
	if e := new(sandbox.SetupError); errors.As(err, &e) && e.Op == "create namespaces" {
		o.lacks(t, "userns", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if err != nil || exit.Code != 0 || exit.Signal != "" || exit.Killed || exit.StartError != "" {
		t.Fatalf("the run that makes the attempts ended with %+v, %v:\n%s", exit, err, tail(out.String()))
	}
	got := make(map[string]attempt)
	for d := json.NewDecoder(&out); d.More(); {
		var a attempt
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		got[a.Name] = a
	}
	return got
}

func tail(s string) string { return s[max(0, len(s)-1000):] }
