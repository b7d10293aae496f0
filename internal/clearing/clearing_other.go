//go:build !linux

package clearing

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Tree removes the file or directory at a path, with everything in it, whatever modes its directories have.
func Tree(path string) error {
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
			if err != nil { // it could not be read: now it can
				return nil
			}
		}
		return nil
	})
	return os.RemoveAll(path)
}
