package tools

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dial connects a client that others wrote.
func dial(t *testing.T, s *Server, version string, opts *mcp.ClientOptions, roots ...string) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		if err := Serve(context.WithoutCancel(t.Context()), inR, outW, s); err != nil {
			t.Errorf("Serve: %v", err)
		}
		outW.Close()
	})
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts)
	for _, uri := range roots {
		//lint:ignore SA1019 clients have roots, deprecated or not
		client.AddRoots(&mcp.Root{URI: uri})
	}
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		inW.Close()
		served.Wait()
		_ = session.Close()
	})
	return session
}

func textOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	if len(r.Content) != 1 {
		t.Fatalf("%d contents, want 1", len(r.Content))
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("a content is %T", r.Content[0])
	}
	return text.Text
}

// versions are those with and without a handshake.
var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

func TestAnotherClient(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			s := New(testOptions(newFakeRunner()))
			s.every = 0
			var progress atomic.Int64
			session := dial(t, s, version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress.Add(1) },
			})
			list, err := session.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range list.Tools {
				got = append(got, tool.Name)
				if tool.Title == "" || tool.Description == "" || tool.InputSchema == nil || tool.OutputSchema == nil || tool.Annotations == nil {
					t.Errorf("%s is not described whole: %+v", tool.Name, tool)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, []string{"package_install", "python_env", "run_python", "run_shell"}) {
				t.Errorf("tools are %q", got)
			}

			params := &mcp.CallToolParams{Name: "run_shell", Arguments: map[string]any{"command": "lines 5"}}
			params.SetProgressToken("p")
			r, err := session.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			if text := textOf(t, r); r.IsError || text != "lines\nexit=0\nworkspace: no changes" {
				t.Errorf("text is %q", text)
			}
			if st, ok := r.StructuredContent.(map[string]any); !ok || st["status"] != "exited" || st["exit_code"] != 0.0 {
				t.Errorf("structure is %v", r.StructuredContent)
			}
			// They came before the result, but this client handles them beside it.
			for end := time.Now().Add(5 * time.Second); progress.Load() < 5 && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if n := progress.Load(); n != 5 {
				t.Errorf("%d progress notifications, want 5", n)
			}

			r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_shell", Arguments: map[string]any{"commnad": "x"}})
			if err != nil || !r.IsError || !strings.Contains(textOf(t, r), "did you mean command?") {
				t.Errorf("a wrong argument gives %+v, %v", r, err)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "none"}); err == nil {
				t.Error("a tool that is none answers")
			}
		})
	}
}

func TestAnotherClientCancels(t *testing.T) {
	for _, version := range versions {
		f := newFakeRunner()
		session := dial(t, New(testOptions(f)), version, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-f.busy
			cancel()
		}()
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_shell", Arguments: map[string]any{"command": "block"}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", version, err)
		}
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_shell", Arguments: map[string]any{"command": "echo next"}})
		if err != nil || !strings.HasPrefix(textOf(t, r), "next\n") {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
	}
}

func TestRootsOfAnotherClient(t *testing.T) {
	noRoots := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	for name, c := range map[string]struct {
		opts  *mcp.ClientOptions
		roots []string
		want  []string
	}{
		"one":             {nil, []string{"file:///a%20b"}, []string{"file:///a%20b"}},
		"several":         {nil, []string{"file:///a", "file:///b"}, []string{"file:///a", "file:///b"}},
		"of any scheme":   {nil, []string{"https://example.com/", "FILE:///a", "file:/b"}, []string{"FILE:///a", "file:/b", "https://example.com/"}},
		"none":            {nil, nil, nil},
		"not able to say": {noRoots, nil, nil},
	} {
		for _, version := range versions {
			t.Run(name+" "+version, func(t *testing.T) {
				f := newFakeRunner()
				opts := testOptions(f)
				opts.AskRoots = true
				opened := 0
				var got []string
				opts.Open = func(_ context.Context, roots []string) (Runner, error) {
					if opened++; opened == 1 {
						return nil, errors.New("not yet")
					}
					got = slices.Sorted(slices.Values(roots))
					return f, nil
				}
				session := dial(t, New(opts), version, c.opts, c.roots...)
				call := func() string {
					r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_shell", Arguments: map[string]any{"command": "echo x"}})
					if err != nil {
						t.Fatal(err)
					}
					return textOf(t, r)
				}
				if text := call(); text != "refused: not yet\nworkspace: no changes" {
					t.Errorf("the first call gives %q", text)
				}
				for range 2 {
					if text := call(); !strings.HasPrefix(text, "x\nexit=0\n") {
						t.Errorf("a later call gives %q", text)
					}
				}
				if opened != 2 || !slices.Equal(got, c.want) {
					t.Errorf("opened %d times, with %q; want %q", opened, got, c.want)
				}
			})
		}
	}
}

// A policy that was known only with the workspace is told once.
func TestPolicyIsTold(t *testing.T) {
	f := newFakeRunner()
	opts := testOptions(f)
	f.describe = opts.Policy.Describe() + " Only 2KiB of output are shown." // what was described is not told again
	session := dial(t, New(opts), "", nil)
	for i, want := range []string{"\nnote: Only 2KiB of output are shown.", ""} {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_shell", Arguments: map[string]any{"command": "echo x"}})
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(t, r); text != "x\nexit=0\nworkspace: no changes"+want {
			t.Errorf("call %d gives %q", i+1, text)
		}
	}
}
