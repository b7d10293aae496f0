package tools

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// heldSteps is what has an installer's steps wait, until the test lets go of them.
type heldSteps struct {
	began chan string   // takes the name of each step that begins
	goOn  chan struct{} // one for each step, or closed
}

func holdSteps() *heldSteps {
	return &heldSteps{began: make(chan string, 100), goOn: make(chan struct{})}
}

func (h *heldSteps) before(ctx context.Context, step string) error {
	h.began <- step
	select {
	case <-h.goOn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// runID checks that a call was answered while its installation goes on.
func runID(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	id, _ := field1(r, "run_id").(string)
	if r.IsError || field1(r, "status") != StatusRunning || id == "" || strings.Contains(textOf(t, r), "workspace:") {
		t.Fatalf("not running: %s", textOf(t, r))
	}
	return id
}

func TestInstallationThatOutlivesItsCall(t *testing.T) {
	hold := holdSteps()
	f := slowRunner(t, hold.before, "six", "needs-six")
	session := dial(t, New(testOptions(f)), "2025-11-25", nil)
	id := runID(t, callTool(t, session, "package_install", map[string]any{"packages": []string{"needs-six"}, "wait_seconds": 0}))
	<-hold.began
	hold.goOn <- struct{}{} // the probe
	if step := <-hold.began; step != "resolve" {
		t.Fatalf("the step is %s", step)
	}
	follow := map[string]any{"run_id": id, "wait_seconds": 0}
	r := callTool(t, session, "package_install", follow)
	if text := textOf(t, r); runID(t, r) != id || !strings.Contains(text, "nothing is installed yet; it goes on: resolving 1 requirement") || !strings.Contains(text, fmt.Sprintf("package_install with run_id=%q", id)) {
		t.Errorf("a look: %s", text)
	}
	// It holds up nobody.
	if r := callTool(t, session, "run_shell", map[string]any{"command": "echo next"}); !strings.HasPrefix(textOf(t, r), "next\nexit=0") {
		t.Errorf("the next call: %s", textOf(t, r))
	}
	close(hold.goOn)
	for range 2 { // the result is kept
		r = callTool(t, session, "package_install", map[string]any{"run_id": id})
		if text := textOf(t, r); r.IsError || field1(r, "status") != StatusDone || !strings.Contains(text, "needs-six 1.0") {
			t.Errorf("the end: %s", text)
		}
	}
	for _, tt := range []struct {
		args map[string]any
		want string
	}{
		{map[string]any{"run_id": "nix"}, `there is no run "nix"`},
		{map[string]any{"run_id": id, "packages": []string{"six"}}, "packages: is given beside run_id"},
		{map[string]any{"packages": []string{"six"}, "stop": true}, "stop: needs run_id"},
		{map[string]any{"packages": []string{"six"}, "wait_seconds": -1}, "wait_seconds: -1 is out of range"},
	} {
		if r := callTool(t, session, "package_install", tt.args); !r.IsError || !strings.Contains(textOf(t, r), tt.want) {
			t.Errorf("%v: %s; want %q", tt.args, textOf(t, r), tt.want)
		}
	}
}

func TestInstallationThatIsStopped(t *testing.T) {
	hold := holdSteps()
	f := slowRunner(t, hold.before, "six")
	session := dial(t, New(testOptions(f)), "2025-11-25", nil)
	id := runID(t, callTool(t, session, "package_install", map[string]any{"packages": []string{"six"}, "wait_seconds": 0}))
	<-hold.began
	r := callTool(t, session, "package_install", map[string]any{"run_id": id, "stop": true})
	if text := textOf(t, r); !r.IsError || field1(r, "status") != StatusCancelled || !strings.HasPrefix(text, "exit=cancelled") {
		t.Errorf("stopped: %s", text)
	}
	close(hold.goOn)
	if e, err := f.environments.Store().Environment("default"); err != nil || len(e.Packages) > 0 {
		t.Errorf("the environment holds %v, %v", e.Packages, err)
	}
	if r := callTool(t, session, "package_install", map[string]any{"packages": []string{"six"}}); r.IsError {
		t.Errorf("the next one: %s", textOf(t, r))
	}
}

// An installation whose call was answered before it had to ask asks by the call that looks at it next, once, and
// goes on after the answer.
func TestLateQuestion(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			hold := holdSteps()
			f := slowRunner(t, hold.before)
			asked := 0
			session := dial(t, New(testOptions(f)), version, &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked++
					return &mcp.ElicitResult{Action: "accept"}, nil
				},
			})
			id := runID(t, callTool(t, session, "package_install", map[string]any{"packages": []string{"needs-six"}, "wait_seconds": 0}))
			close(hold.goOn)
			r := callTool(t, session, "run_shell", map[string]any{"run_id": id}) // which can't ask
			if text := textOf(t, r); !r.IsError || field1(r, "status") != StatusApproval || !strings.Contains(text, "package_install with run_id") || asked != 0 {
				t.Errorf("looked at by another tool, asked %d times: %s", asked, text)
			}
			if e, err := f.environments.Store().Environment("default"); err != nil || len(e.Packages) > 0 {
				t.Errorf("before the answer the environment holds %v, %v", e.Packages, err)
			}
			r = callTool(t, session, "package_install", map[string]any{"run_id": id})
			if text := textOf(t, r); r.IsError || field1(r, "status") != StatusDone || !strings.Contains(text, "six 1.17.0") || asked != 1 {
				t.Errorf("asked %d times: %s", asked, text)
			}
			r = callTool(t, session, "package_install", map[string]any{"run_id": id})
			if text := textOf(t, r); field1(r, "status") != StatusApproval || !strings.Contains(text, "was asked about this already") || asked != 1 {
				t.Errorf("once more, asked %d times: %s", asked, text)
			}
		})
	}
}

// A client that wants progress is told what an installation does.
func TestProgressOfAnInstallation(t *testing.T) {
	s := New(testOptions(packagesRunner(t, "six", "needs-six")))
	s.every = 0
	c := connect(t, s)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"package_install","arguments":{"packages":["needs-six"]},"_meta":{"progressToken":7}}}`)
	var told []string
	for {
		r := decode(t, c.next())
		if r.Result != nil {
			break
		}
		told = append(told, r.Params.Message)
	}
	want := []string{"resolving 1 requirement", "fetching 2 packages (", "installing 2 packages", "composing the environment"}
	at := 0
	for _, text := range told { // how far a step is stands between them, if it takes long
		if at < len(want) && strings.HasPrefix(text, want[at]) {
			at++
		}
	}
	if at < len(want) {
		t.Errorf("told %q, which lacks %q", told, want[at])
	}
}
