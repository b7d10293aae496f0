package tools

import (
	"errors"
	"strings"
	"testing"
	"time"

	"airlock/internal/units"
)

// Tools and their arguments are shown before a workspace that the client's roots name is known, and with
// it the policy of its project.
func TestPermit(t *testing.T) {
	limits := DefaultLimits()
	limits.MaxTimeout = units.Duration(5 * time.Second)
	w := NewRunner(RunnerOptions{Policy: Policy{Limits: limits}, Tools: Config{Disable: []string{"run_shell"}}})
	for _, tt := range []struct {
		r    Request
		want string
	}{
		{Request{Tool: "run_python", Timeout: 5 * time.Second}, ""},
		{Request{Tool: "run_python"}, ""},
		{Request{Tool: "run_python", Timeout: 6 * time.Second}, "from 1 to 5 (limits.max_timeout)"},
		{Request{Tool: "run_shell"}, "run_shell is disabled in this workspace (tools.disable)"},
	} {
		switch err := w.Permit(tt.r); {
		case tt.want == "" && err != nil:
			t.Errorf("%+v: %v", tt.r, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%+v gives %v, want %q", tt.r, err, tt.want)
		}
	}
}

func TestForbiddenCallsDoNotRun(t *testing.T) {
	f := newFakeRunner()
	f.permit = errors.New("run_shell is disabled")
	c := connect(t, New(testOptions(f)))
	c.send(shell("1", "echo hi"))
	r := decode(t, c.next())
	if !r.Result.IsError || r.Result.StructuredContent["status"] != StatusRefused || !strings.HasPrefix(r.text(), "refused: run_shell is disabled") {
		t.Errorf("the answer is %+v", r)
	}
	if started, _ := f.seen(); len(started) > 0 {
		t.Errorf("%q ran", started)
	}
}
