package tools

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"airlock/envs"
	"airlock/envs/envstest"
)

// packagesRunner is a Runner with environments whose installer is played.
func packagesRunner(t *testing.T, allow ...string) *fakeRunner {
	t.Helper()
	return slowRunner(t, nil, allow...)
}

// slowRunner is one whose installer calls before with the name of each step.
func slowRunner(t *testing.T, before func(ctx context.Context, step string) error, allow ...string) *fakeRunner {
	t.Helper()
	dir := t.TempDir()
	store, err := envs.OpenStore(filepath.Join(dir, "envs"))
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(dir, "python3")
	if err := os.WriteFile(python, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	config := envs.DefaultPackages()
	config.Allow = allow
	wheel := func(name, version string, requires ...string) envstest.Wheel {
		return envstest.Wheel{Name: name, Version: version, Requires: requires, Files: map[string]string{strings.ReplaceAll(name, "-", "_") + ".py": "V = '" + version + "'\n"}}
	}
	index := &envstest.Installer{Before: before, Wheels: []envstest.Wheel{wheel("six", "1.16.0"), wheel("six", "1.17.0"), wheel("needs-six", "1.0", "six>=1.16")}}
	c, err := envs.Begin(t.Context(), envs.Options{Store: store, Packages: config, Find: envs.FindOptions{System: []string{python}}, Installer: index})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = filepath.WalkDir(dir, func(name string, d os.DirEntry, _ error) error { // what is sealed t can't remove
			if d != nil && d.IsDir() {
				_ = os.Chmod(name, 0o700)
			}
			return nil
		})
	})
	f := newFakeRunner()
	f.environments, f.index = c, index
	return f
}

func callTool(t *testing.T, session *mcp.ClientSession, name string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func field1(r *mcp.CallToolResult, name string) any {
	m, _ := r.StructuredContent.(map[string]any)
	return m[name]
}

// A client that can ask its user is asked once, for the whole set, in every version of the protocol.
func TestAskingTheUser(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, answer := range []string{"accept", "decline", "cancel"} {
			t.Run(version+" "+answer, func(t *testing.T) {
				f := packagesRunner(t)
				var questions []string
				session := dial(t, New(testOptions(f)), version, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						questions = append(questions, r.Params.Message)
						return &mcp.ElicitResult{Action: answer}, nil
					},
				})
				r := callTool(t, session, "package_install", map[string]any{"packages": []string{"needs_six"}, "reason": "a test"})
				if len(questions) != 1 || !strings.Contains(questions[0], "needs-six 1.0") || !strings.Contains(questions[0], "six 1.17.0") || !strings.Contains(questions[0], `"a test"`) {
					t.Fatalf("asked %q", questions)
				}
				e, err := f.environments.Store().Environment("default")
				if err != nil {
					t.Fatal(err)
				}
				text := textOf(t, r)
				if answer != "accept" {
					if !r.IsError || field1(r, "status") != StatusRefused || len(e.Packages) > 0 {
						t.Errorf("%s\n%v", text, e.Packages)
					}
					return
				}
				if r.IsError || field1(r, "status") != StatusDone || field1(r, "additive") != true || len(e.Packages) != 2 || !strings.Contains(text, "six 1.17.0") {
					t.Errorf("%s\n%v", text, e.Packages)
				}
				if grants, err := f.environments.Store().Grants(); err != nil || len(grants) > 0 {
					t.Errorf("grants %v, %v", grants, err)
				}
				r = callTool(t, session, "package_install", map[string]any{"packages": []string{"six"}})
				if len(questions) != 1 || !strings.Contains(textOf(t, r), "already installed: six 1.17.0") {
					t.Errorf("again: %s", textOf(t, r))
				}
			})
		}
	}
}

// A client that can't ask gets the command for its user, and the same call succeeds once that was run.
func TestApprovedOnTheCommandLine(t *testing.T) {
	f := packagesRunner(t, "six")
	session := dial(t, New(testOptions(f)), "2025-06-18", nil)
	store := f.environments.Store()
	for _, tool := range []struct {
		name string
		args map[string]any
	}{
		{"package_install", map[string]any{"packages": []string{"needs-six"}}},
		{"python_env", map[string]any{"action": "request", "environment": "other", "packages": []any{"needs-six"}}},
	} {
		r := callTool(t, session, tool.name, tool.args)
		id, _ := field1(r, "request_id").(string)
		if !r.IsError || field1(r, "status") != StatusApproval || !strings.Contains(textOf(t, r), "airlock approve "+id) {
			t.Fatalf("%s: %s", tool.name, textOf(t, r))
		}
		if r := callTool(t, session, "python_env", map[string]any{"action": "status", "request_id": id}); !strings.Contains(textOf(t, r), "waiting") {
			t.Errorf("status: %s", textOf(t, r))
		}
		if _, err := store.Answer(t.Context(), id, true, false); err != nil {
			t.Fatal(err)
		}
		if r := callTool(t, session, tool.name, tool.args); r.IsError || field1(r, "status") != StatusDone {
			t.Errorf("%s after the approval: %s", tool.name, textOf(t, r))
		}
	}
	r := callTool(t, session, "python_env", map[string]any{"action": "show", "environment": "default"})
	if text := textOf(t, r); !strings.Contains(text, "needs-six 1.0") || !strings.Contains(text, "six 1.17.0") {
		t.Errorf("show: %s", text)
	}
	if r := callTool(t, session, "python_env", map[string]any{"action": "list"}); !strings.Contains(textOf(t, r), "default: 2 packages") || !strings.Contains(textOf(t, r), "other: 0 packages (of this conversation)") {
		t.Errorf("list: %s", textOf(t, r))
	}
	if r := callTool(t, session, "python_env", map[string]any{"action": "use", "environment": "default"}); r.IsError {
		t.Errorf("use: %s", textOf(t, r))
	}
}

func TestPackageArguments(t *testing.T) {
	f := packagesRunner(t, "six")
	session := dial(t, New(testOptions(f)), "2025-06-18", nil)
	for _, tt := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"package_install", map[string]any{}, "packages: is missing"},
		{"package_install", map[string]any{"packages": []string{}}, "packages: is empty"},
		{"package_install", map[string]any{"packages": []string{"-r /etc/passwd", "six"}}, `packages: "-r /etc/passwd": not a requirement`},
		{"package_install", map[string]any{"packages": []string{"six"}, "environment": "../x"}, "environment: "},
		{"package_install", map[string]any{"packages": []string{"jsonlite; q()"}, "language": "r"}, "not a requirement: a name of an R package"},
		{"package_install", map[string]any{"packages": []string{"six"}, "upgrade": "perhaps"}, "upgrade: takes true or false"},
		{"python_env", map[string]any{"action": "delete"}, "action: takes"},
		{"python_env", map[string]any{"action": "status"}, "request_id: is missing"},
		{"python_env", map[string]any{"action": "status", "request_id": "../../x"}, "there is no such request"},
		{"python_env", map[string]any{"action": "use"}, "environment: is missing"},
		{"python_env", map[string]any{"action": "show", "packages": []string{"six"}}, "only for the action"},
		{"run_shell", map[string]any{"command": "echo", "environment": "A B"}, "environment: "},
	} {
		r := callTool(t, session, tt.tool, tt.args)
		if text := textOf(t, r); !r.IsError || !strings.Contains(text, tt.want) {
			t.Errorf("%s %v: %s; want %q", tt.tool, tt.args, text, tt.want)
		}
	}
}

// An answer is good for the question that it belongs to.
func TestPendingPlans(t *testing.T) {
	var p pendingPlans
	asked := packageRequest{Tool: "package_install", Action: "install", Want: envs.Want{Environment: "default", Requirements: []string{"six"}}}
	other := asked
	other.Want.Environment = "other"
	larger := asked
	larger.Want.Requirements = []string{"six", "evil"}
	plan := &envs.Plan{}
	name := p.keep(asked, plan)
	for _, tt := range []struct {
		name string
		r    packageRequest
		want *envs.Plan
	}{{"", asked, nil}, {"guess", asked, nil}, {name, other, nil}, {name, larger, nil}, {name, asked, plan}, {name, asked, nil}} {
		if got := p.take(tt.name, tt.r); got != tt.want {
			t.Errorf("%q for %v: %v", tt.name, tt.r, got)
		}
	}
	for range maxPending + 1 {
		p.keep(asked, plan)
	}
	if len(p.plans) != maxPending || len(p.order) != maxPending {
		t.Errorf("%d plans are kept", len(p.plans))
	}
}
