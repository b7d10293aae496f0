package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkHide looks for hidden paths in a workspace of 100,000 files: the first look of a server, and those
// after it. "/.env" names one path; ".env" could be anywhere.
func BenchmarkHide(b *testing.B) {
	for _, dirs := range []int{1000, 10000} {
		root := b.TempDir()
		for d := range dirs {
			dir := filepath.Join(root, fmt.Sprintf("d%02d", d%100), fmt.Sprintf("e%03d", d))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
			for f := range 100_000 / dirs {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", f)), nil, 0o644); err != nil {
					b.Fatal(err)
				}
			}
		}
		host, err := openTree(root)
		if err != nil {
			b.Fatal(err)
		}
		defer host.close()
		for _, glob := range []string{"/.env", ".env"} {
			h, err := NewHidden([]string{glob})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d-directories/first", glob[len(glob)-4:]+map[bool]string{true: "-at-the-root"}[glob[0] == '/'], dirs), func(b *testing.B) {
				for b.Loop() {
					if _, err := newHiddenIndex(h, host, true).look(stamp{sec: 1 << 40}); err != nil {
						b.Fatal(err)
					}
				}
			})
			x := newHiddenIndex(h, host, true)
			b.Run(fmt.Sprintf("%s/%d-directories/again", glob[len(glob)-4:]+map[bool]string{true: "-at-the-root"}[glob[0] == '/'], dirs), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := x.look(stamp{sec: 1 << 40}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
