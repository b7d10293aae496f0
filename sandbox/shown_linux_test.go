package sandbox

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Whatever comes to be at a place that is shown is noticed, whether one look at a directory stands for it or one of its own, and
// nothing else is.
func TestShown(t *testing.T) {
	for _, how := range []struct {
		name string
		age  time.Duration // of the directory, when it was looked at
		dirs int
	}{
		{"a directory that has settled", settled + time.Second, 1},
		{"one that may be changing", settled - time.Second, 0},
		{"one from the future", -time.Hour, 0},
	} {
		for _, tt := range []struct {
			name string
			do   func(dir string) error
			same bool
		}{
			{"nothing", func(string) error { return nil }, true},
			{"a file is written", func(dir string) error { return os.WriteFile(dir+"/etc/a", []byte("more"), 0o600) }, true},
			{"a directory's entry is made", func(dir string) error { return os.Mkdir(dir+"/etc/d/new", 0o700) }, true},
			{"a file is replaced", func(dir string) error { return os.Rename(dir+"/etc/new", dir+"/etc/a") }, false},
			{"a file is gone", func(dir string) error { return os.Remove(dir + "/etc/b") }, false},
			{"a missing one is made", func(dir string) error { return os.WriteFile(dir+"/etc/none", nil, 0o600) }, false},
			{"a directory is replaced", func(dir string) error {
				if err := os.Rename(dir+"/etc/d", dir+"/etc/old"); err != nil {
					return err
				}
				return os.Mkdir(dir+"/etc/d", 0o700)
			}, false},
			{"the directory itself is replaced", func(dir string) error {
				if err := os.Rename(dir+"/etc", dir+"/old"); err != nil {
					return err
				}
				return os.CopyFS(dir+"/etc", os.DirFS(dir+"/old"))
			}, false},
			{"one elsewhere is replaced", func(dir string) error { return os.Rename(dir+"/etc/new", dir+"/alone/file") }, false},
			{"the shell is replaced", func(dir string) error { return os.Rename(dir+"/etc/new", dir+"/bin/bash") }, false},
		} {
			t.Run(how.name+"/"+tt.name, func(t *testing.T) {
				dir := t.TempDir()
				for _, d := range []string{"/etc/d", "/alone", "/bin"} {
					if err := os.MkdirAll(dir+d, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				for _, f := range []string{"/etc/a", "/etc/b", "/etc/new", "/alone/file", "/bin/bash"} {
					if err := os.WriteFile(dir+f, []byte("x"), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				b := base{Shell: &bash{Path: wire(dir + "/bin/bash")}}
				for _, f := range []string{"/etc/a", "/etc/b", "/etc/none", "/etc/d", "/alone/file"} {
					b.Steps = append(b.Steps, step{Do: doBind, Source: wire(dir + f)})
				}
				changed := directoryAt(filepath.Join(dir, "etc")).changed
				s := shownBy(b, time.Unix(changed.Unix()).Add(how.age))
				if len(s.dirs) != how.dirs {
					t.Fatalf("looks at %d directories for what is in them, want %d", len(s.dirs), how.dirs)
				}
				time.Sleep(20 * time.Millisecond) // older kernels stamp by the tick, and this is not as long ago as was said
				if err := tt.do(dir); err != nil {
					t.Fatal(err)
				}
				if got := s.unchanged(); got != tt.same {
					t.Errorf("unchanged: %v, want %v", got, tt.same)
				}
			})
		}
	}
}
