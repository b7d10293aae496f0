package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What can be written is the layer, and nothing that lies below it or beside it.
func TestWorkspaceOnOverlay(t *testing.T) { onEach(t, testWorkspaceOnOverlay) }

func testWorkspaceOnOverlay(t *testing.T, n Backend) {
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "f"), []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(ws, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	var upper string
	out := shell(t, n, "pwd; cat f; echo new > f; echo x > dir/g; rm -r dir; mkdir dir; cat f", func(s *Spec) { upper = onOverlay(t, s, ws) })
	if want := ws + "\nold\nnew\n"; out != want {
		t.Errorf("output %q, want %q", out, want)
	}
	if b, err := os.ReadFile(filepath.Join(ws, "f")); string(b) != "old\n" {
		t.Errorf("the lower file holds %q (%v)", b, err)
	}
	if b, err := os.ReadFile(filepath.Join(upper, "f")); string(b) != "new\n" {
		t.Errorf("the upper file holds %q (%v)", b, err)
	}
	if entries, err := os.ReadDir(ws); len(entries) != 2 {
		t.Errorf("the workspace holds %v (%v): something was made in it", entries, err)
	}
}

func TestWorkspacePaths(t *testing.T) { onEach(t, testWorkspacePaths) }

func testWorkspacePaths(t *testing.T, n Backend) {
	base := t.TempDir()
	for _, name := range []string{"plain", "with space", "comma,colon:back\\slash", "new\nline", "\xff", `"quoted"`, "lowerdir=x"} {
		t.Run(name, func(t *testing.T) {
			ws := filepath.Join(base, name)
			if err := os.Mkdir(ws, 0o755); err != nil {
				t.Fatal(err)
			}
			var upper string
			out := shell(t, n, "pwd; echo x > f", func(s *Spec) { upper = onOverlay(t, s, ws) })
			if out != ws+"\n" {
				t.Errorf("pwd gave %q, want %q", out, ws)
			}
			if _, err := os.Stat(filepath.Join(upper, "f")); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("through a link", func(t *testing.T) {
		link := filepath.Join(base, "link")
		if err := os.Symlink("plain", link); err != nil {
			t.Fatal(err)
		}
		out := shell(t, n, "pwd; cd "+link+"; pwd -P", func(s *Spec) { onOverlay(t, s, link) })
		if want := filepath.Join(base, "plain") + "\n"; !strings.HasSuffix(out, want) {
			t.Errorf("got %q, want the real path %q at the end", out, want)
		}
	})
	t.Run("below home", func(t *testing.T) {
		home, err := os.MkdirTemp("/home/"+filepath.Base(os.Getenv("HOME")), "airlock-test-")
		if err != nil {
			home, err = os.MkdirTemp("/home", "airlock-test-")
		}
		if err != nil {
			t.Skipf("no directory can be made below /home: %v", err)
		}
		t.Cleanup(func() { os.RemoveAll(home) })
		if out := shell(t, n, "pwd; echo x > f; cat f", func(s *Spec) { onOverlay(t, s, home) }); out != home+"\nx\n" {
			t.Errorf("got %q", out)
		}
	})
}

func TestMountsOfARun(t *testing.T) { onEach(t, testMountsOfARun) }

func testMountsOfARun(t *testing.T, n Backend) {
	dir := t.TempDir()
	for _, name := range []string{"secret", "masked/inner", "shown"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(s *Spec) {
		s.Mounts = append(s.Mounts,
			Mount{Kind: MountBind, Source: dir, Target: dir, Writable: true},
			Mount{Kind: MountMask, Target: dir + "/secret"},
			Mount{Kind: MountMask, Target: dir + "/masked"},
			Mount{Kind: MountMask, Target: dir + "/not-there"},
			Mount{Kind: MountFile, Target: "/home/run/.config/f", Content: []byte("content")},
			Mount{Kind: MountSymlink, Source: "shown", Target: "/opt-link"},
		)
		s.Dir = dir
	}
	out := shell(t, n, `cat shown; echo; cat secret 2>&1; ls -A masked; echo x > masked/y || true; echo new > new
cat /home/run/.config/f; echo; (echo x > /home/run/.config/f) 2>&1; readlink /opt-link; true`, edit)
	for _, want := range []string{"shown\n", "secret: Permission denied\n", "content\n", "Read-only file system", "shown\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "inner") {
		t.Errorf("the masked directory shows what it holds:\n%s", out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "new")); string(b) != "new\n" {
		t.Errorf("the writable bind holds %q (%v)", b, err)
	}
}

// A mount point is never made in the workspace: it would land.
func TestNoMountPointInTheWorkspace(t *testing.T) { onEach(t, testNoMountPointInTheWorkspace) }

func testNoMountPointInTheWorkspace(t *testing.T, n Backend) {
	ws := t.TempDir()
	spec := testSpec(t, "true")
	upper := onOverlay(t, &spec, ws)
	spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: "/usr", Target: ws + "/missing"})
	_, err := n.Start(t.Context(), spec, Stdio{})
	if err == nil || !strings.Contains(err.Error(), "make mount point "+ws+"/missing") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(upper); len(entries) > 0 {
		t.Errorf("the layer holds %v", entries)
	}
}

// A link that the workspace holds does not lead a mount elsewhere.
func TestTargetsDoNotFollowLinks(t *testing.T) { onEach(t, testTargetsDoNotFollowLinks) }

func testTargetsDoNotFollowLinks(t *testing.T, n Backend) {
	ws := t.TempDir()
	if err := os.Symlink("/tmp", filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, "true")
	onOverlay(t, &spec, ws)
	spec.Mounts = append(spec.Mounts, Mount{Kind: MountBind, Source: "/usr", Target: ws + "/link/x"})
	_, err := n.Start(t.Context(), spec, Stdio{})
	if err == nil || !strings.Contains(err.Error(), unix.ELOOP.Error()) && !strings.Contains(err.Error(), unix.ENOTDIR.Error()) {
		t.Errorf("got %v", err)
	}
}

// One size bounds everything that the private tmpfs is seen as.
func TestScratchIsBounded(t *testing.T) { onEach(t, testScratchIsBounded) }

func testScratchIsBounded(t *testing.T, n Backend) {
	out := shell(t, n, `for d in /tmp /var/tmp /dev/shm /run /home/run; do
head -c 600k /dev/zero > $d/x 2>/dev/null || true; done; cat /tmp/x /var/tmp/x /dev/shm/x /run/x /home/run/x | wc -c`,
		func(s *Spec) { s.Limits.Disk = 1 << 20 })
	var written int
	if _, err := fmt.Sscan(out, &written); err != nil || written > 1<<20 || written < 600<<10 {
		t.Errorf("%q bytes could be written (%v), of 1 MiB", strings.TrimSpace(out), err)
	}
}

// A plan without a seal would leave the host's root within the payload's reach, and is not begun.
func TestNoPlanWithoutASeal(t *testing.T) {
	for _, rest := range [][]step{nil, {{Do: doSeal, Target: "/"}, {Do: doMask, Target: "/x"}}} {
		if err := new(builder).finish(rest); err == nil || !strings.Contains(err.Error(), "without a seal") {
			t.Errorf("%v: %v", rest, err)
		}
	}
}
