package tools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"airlock/overlay"
	"airlock/sandbox"
)

// cacheBackend runs nothing: what a command would write to its cache it writes into the layer. It refuses overlays whose
// lower layer is in refuses.
type cacheBackend struct {
	refuses map[string]bool
	started []string // the upper layers of the caches
}

func (*cacheBackend) Name() string                { return "fake" }
func (*cacheBackend) Unconfined() bool            { return false }
func (*cacheBackend) Probe(context.Context) error { return nil }
func (*cacheBackend) Held() map[string]string     { return nil }
func (*cacheBackend) Close() error                { return nil }

func (b *cacheBackend) Start(_ context.Context, spec sandbox.Spec, _ sandbox.Stdio) (sandbox.Process, error) {
	upper := ""
	for _, m := range spec.Mounts {
		if m.Kind == sandbox.MountOverlay && b.refuses[m.Source] {
			return nil, &sandbox.SetupError{Op: sandbox.OpMountOverlay, Path: m.Source, Err: errors.New("refused")}
		}
		if m.Target == "/home/run/.cache" {
			upper = m.Upper
		}
	}
	b.started = append(b.started, upper)
	content, status, _ := strings.Cut(spec.Argv[len(spec.Argv)-1], " ")
	if upper != "" {
		if err := os.WriteFile(filepath.Join(upper, "f"), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return hasExited{len(status)}, nil
}

type hasExited struct{ code int }

func (e hasExited) Wait() (sandbox.Exit, error)  { return sandbox.Exit{Code: e.code}, nil }
func (e hasExited) Ended() (sandbox.Exit, error) { return e.Wait() }

func TestCacheFollowsItsRun(t *testing.T) {
	for _, mode := range []string{"overlay", "readonly", "direct"} {
		t.Run(mode, func(t *testing.T) {
			ws, state := t.TempDir(), t.TempDir()
			config := overlay.Defaults()
			config.Mode = mode
			layers, err := overlay.Open(ws, state, config)
			if err != nil {
				t.Fatal(err)
			}
			cache, err := overlay.OpenCache(state, ws, 1<<20, os.Geteuid(), os.Getegid())
			if err != nil {
				t.Fatal(err)
			}
			backend := &cacheBackend{refuses: map[string]bool{}}
			w := NewRunner(RunnerOptions{
				Backend: backend, Layers: layers, Cache: cache, View: View{Workspace: ws, Shell: "/bin/sh"},
				Policy:   Policy{LandOn: "success", Limits: DefaultLimits(), ReadOnly: mode == "readonly", Through: mode == "direct"},
				Identity: Identity{UID: os.Geteuid(), GID: os.Getegid(), Home: "/home/run"},
			})
			defer func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}()
			run := func(command, want string) Result {
				t.Helper()
				result, err := w.Run(t.Context(), Request{Tool: "run_shell", Command: command}, nil)
				if err != nil || result.Status != StatusExited {
					t.Fatalf("%s: %v\n%s", command, err, result.Text())
				}
				if got, _ := os.ReadFile(filepath.Join(cache.Files(), "f")); string(got) != want {
					t.Errorf("after %q the cache has %q, want %q", command, got, want)
				}
				return result
			}
			run("one", "one")
			run("two fails", "one")
			run("three", "three")
			// A refused workspace is another attempt, with a layer of the cache that was not mounted yet.
			if mode == "overlay" {
				backend.refuses[ws] = true
				run("four", "four")
				delete(backend.refuses, ws)
				run("three", "three")
			}
			backend.refuses[cache.Files()] = true
			for range 2 {
				result := run("five", "three")
				if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "~/.cache is empty and does not last: the kernel does not take "+cache.Files()) {
					t.Errorf("notes: %q", notes)
				}
			}
			if last := backend.started[len(backend.started)-2:]; last[0] != "" || last[1] != "" {
				t.Errorf("a refused cache was mounted: %q", last)
			}
			if left, err := filepath.Glob(filepath.Join(filepath.Dir(cache.Files()), "layers", "*-*", "*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
		})
	}
}
