//go:build unix

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// realTempDir is a temporary directory whose own path leads through no link.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFollowLinks(t *testing.T) {
	dir := realTempDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "data/inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, text := range map[string]string{
		"rel": "data", "abs": dir + "/data", "two": "abs/inner", "up": "data/inner/..", "loop": "loop", "dangling": "gone",
	} {
		if err := os.Symlink(text, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, text string) Mount {
		return Mount{Kind: MountSymlink, Source: text, Target: filepath.Join(dir, name)}
	}
	for _, test := range []struct {
		name, real string
		links      []Mount
	}{
		{"data/inner", "data/inner", nil},
		{"data/../data/./inner/", "data/inner", nil},
		{"rel/inner", "data/inner", []Mount{link("rel", "data")}},
		{"abs", "data", []Mount{link("abs", dir+"/data")}},
		{"two", "data/inner", []Mount{link("two", "abs/inner"), link("abs", dir+"/data")}},
		{"up/inner", "data/inner", []Mount{link("up", "data/inner/..")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			real, links, err := FollowLinks(dir + "/" + test.name)
			if err != nil || real != filepath.Join(dir, test.real) {
				t.Errorf("got %q, %v", real, err)
			}
			if diff := cmp.Diff(test.links, links); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
	for name, want := range map[string]string{
		dir + "/loop":     "resolve " + dir + "/loop: too many levels of symbolic links",
		dir + "/dangling": "lstat " + dir + "/gone: no such file or directory",
		"relative":        "resolve relative: not an absolute path",
	} {
		_, _, err := FollowLinks(name)
		if e := new(fs.PathError); !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

func TestShow(t *testing.T) {
	dir := realTempDir(t)
	if err := os.Symlink("/", filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	got, err := Show(filepath.Join(dir, "self"))
	want := []Mount{
		{Kind: MountSymlink, Source: ".", Target: filepath.Join(dir, "self")},
		{Kind: MountBind, Source: dir, Target: dir},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, name := range []string{filepath.Join(dir, "root"), filepath.Join(dir, "root/dev/null"), filepath.Join(dir, "missing")} {
		if got, err := Show(name); err == nil {
			t.Errorf("%s is shown by %v", name, got)
		}
	}
}
