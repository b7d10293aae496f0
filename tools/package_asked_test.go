package tools

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"airlock/envs/envstest"
)

// What the user said yes to is what was shown: where the index has another file under the same version by the time of the
// answer, nothing is installed, and the next call asks anew.
func TestIndexChangesWhileAsked(t *testing.T) {
	f := packagesRunner(t)
	asked := 0
	session := dial(t, New(testOptions(f)), "2025-06-18", &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if asked++; asked == 1 {
				i := slices.IndexFunc(f.index.Wheels, func(w envstest.Wheel) bool { return w.Version == "1.17.0" })
				f.index.Wheels[i].Files["six.py"] = "V = 'another'\n"
			}
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	install := func() *mcp.CallToolResult {
		return callTool(t, session, "package_install", map[string]any{"packages": []string{"six"}})
	}
	r := install()
	e, err := f.environments.Store().Environment("default")
	if text := textOf(t, r); !r.IsError || field1(r, "status") != StatusError || !strings.Contains(text, "nothing was changed") || err != nil || len(e.Packages) > 0 {
		t.Errorf("%s: %v, %v", text, e.Packages, err)
	}
	if r := install(); r.IsError || asked != 2 {
		t.Errorf("the next call, asked %d times: %s", asked, textOf(t, r))
	}
}

// "Always" is for the packages of the set, in any version, in the environment that was asked about, until it is revoked.
func TestAlways(t *testing.T) {
	f := packagesRunner(t)
	asked := 0
	session := dial(t, New(testOptions(f)), "2025-06-18", &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"always": asked == 1}}, nil
		},
	})
	store := f.environments.Store()
	for i, step := range []struct {
		environment, requirement string
		revoke                   bool
		asked                    int
	}{{"default", "six==1.16.0", false, 1}, {"default", "six==1.17.0", false, 1}, {"default", "needs-six", false, 2}, {"other", "six", false, 3}, {"default", "six==1.16.0", true, 4}} {
		if step.revoke {
			grants, err := store.Grants()
			if err != nil || len(grants) != 1 || !slices.Equal(grants[0].Names, []string{"six"}) {
				t.Fatalf("grants %v, %v", grants, err)
			}
			if err := store.Revoke(t.Context(), grants[0].ID); err != nil {
				t.Fatal(err)
			}
		}
		r := callTool(t, session, "package_install", map[string]any{"packages": []string{step.requirement}, "environment": step.environment})
		if r.IsError || asked != step.asked {
			t.Errorf("%d: %s into %s: asked %d times, want %d: %s", i, step.requirement, step.environment, asked, step.asked, textOf(t, r))
		}
	}
}

// A note says where what was installed is not what the runs of the conversation see, and what came of a requirement in
// another way than it was meant.
func TestNotesOfAnInstallation(t *testing.T) {
	f := packagesRunner(t, "six", "needs-six", "gone")
	f.index.Wheels = append(f.index.Wheels, envstest.Wheel{Name: "gone", Version: "1.0", Yanked: true})
	session := dial(t, New(testOptions(f)), "2025-06-18", nil)
	for _, tt := range []struct {
		environment, requirement, note string
	}{
		{"default", "six==1.16.0", "where the project has a .venv"},
		{"other", "six[nope]", "there are no such extras, and nothing came of them: six[nope]"},
		{"other", "six==1.16.0", `the runs of this conversation have the environment "default"; they see this one with environment: "other"`},
		{"default", "gone==1.0", "gone 1.0 was yanked"},
		{"default", "needs-six; python_version < '3'", "the condition does not hold"},
	} {
		r := callTool(t, session, "package_install", map[string]any{"packages": []string{tt.requirement}, "environment": tt.environment})
		if text := textOf(t, r); r.IsError || !strings.Contains(text, tt.note) {
			t.Errorf("%s into %s: %s\nlacks %q", tt.requirement, tt.environment, text, tt.note)
		}
	}
	r := callTool(t, session, "package_install", map[string]any{"packages": []string{"-r x"}})
	if text := textOf(t, r); !r.IsError || strings.Contains(text, "workspace:") {
		t.Errorf("a wrong argument: %s", text)
	}
	r = callTool(t, session, "python_env", map[string]any{"action": "use", "environment": "typo"})
	if text := textOf(t, r); r.IsError || !strings.Contains(text, `no Python package was installed into the environment "typo" yet`) {
		t.Errorf("an environment that is not there: %s", text)
	}
}
