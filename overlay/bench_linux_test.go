package overlay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkTransaction changes one file in workspaces of different size: the time must not depend on
// it. It leaves out the run itself, with the mount.
func BenchmarkTransaction(b *testing.B) {
	for _, files := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			base := b.TempDir()
			dir := filepath.Join(base, "ws")
			for i := range files {
				sub := filepath.Join(dir, fmt.Sprintf("d%d", i/1000))
				if i%1000 == 0 {
					if err := os.MkdirAll(sub, 0o755); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), nil, 0o644); err != nil {
					b.Fatal(err)
				}
			}
			w, err := Open(dir, filepath.Join(base, "state"), Defaults())
			if err != nil {
				b.Fatal(err)
			}
			defer w.Close()
			for i := 0; b.Loop(); i++ {
				txn, err := w.Begin(context.Background(), fmt.Sprintf("r%d", i))
				if err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(txn.Layer().Upper, "x"), fmt.Appendln(nil, i), 0o644); err != nil {
					b.Fatal(err)
				}
				if report, err := txn.Land(context.Background()); err != nil || len(report.Added)+len(report.Modified) != 1 {
					b.Fatalf("%+v, %v", report, err)
				}
			}
		})
	}
}
