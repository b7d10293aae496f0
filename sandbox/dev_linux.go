package sandbox

import (
	"os"
)

// deviceNodes are the host's nodes that a run gets. None of them reaches hardware or anything that
// another process has.
var deviceNodes = []string{"full", "null", "random", "tty", "urandom", "zero"}

// makeDev makes /dev: the nodes, terminals of its own, and the usual links. /dev/shm is a face of the
// private tmpfs.
func (b *builder) makeDev() error {
	for _, name := range deviceNodes {
		node, ok := b.src.nodes[name]
		if !ok {
			continue
		}
		if err := b.mountAt(node, "/dev/"+name); err != nil {
			return err
		}
		node.Close()
	}
	if err := b.mountAt(b.src.pts, "/dev/pts"); err != nil {
		return err
	}
	b.src.pts.Close()
	links := [][2]string{
		{"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"},
		{"/proc/self/fd/2", "/dev/stderr"},
		{"pts/ptmx", "/dev/ptmx"},
	}
	for _, l := range links {
		if err := os.Symlink(l[0], l[1]); err != nil {
			return setupError("make link", l[1], err.(*os.LinkError).Err)
		}
	}
	return nil
}
