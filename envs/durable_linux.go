package envs

import (
	"os"

	"golang.org/x/sys/unix"
)

// settle waits until what was written to the filesystem of dir is on the disk: a layer is thousands of
// files, which one call settles sooner than one for each.
func settle(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
