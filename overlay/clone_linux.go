package overlay

import "golang.org/x/sys/unix"

// cloneLayer copies the layer of a run that waits, in the directory from, to that of the transaction:
// directories are made anew, and everything else is linked. A landing strips marks and sets modes,
// which the files then have in both; what they were is in the record.
func (t *Txn) cloneLayer(from *tree) (*tree, error) {
	upper, err := from.sub("upper")
	if err != nil {
		return nil, err
	}
	defer upper.close()
	to, err := t.dir.mkdir("upper", 0o700)
	if err != nil {
		return nil, err
	}
	root, err := statAt(upper.fd, "")
	if err == nil {
		err = t.cloneDir(upper, "", root, to)
	}
	if err != nil {
		to.close()
		return nil, err
	}
	return to, nil
}

// cloneDir fills a directory that was made with what from has in that of the same path.
func (t *Txn) cloneDir(from *tree, path string, dir inode, to *tree) error {
	names, err := from.list(path)
	if is(err, unix.ENAMETOOLONG) {
		return nil // the walk that judges it comes no further either, and withholds it
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		below := joinPath(path, name)
		i, err := from.stat(below)
		if err != nil {
			return err
		}
		to.point()
		if i.kind == directory {
			err = to.parent(below, func(fd int, name string) error { return unix.Mkdirat(fd, name, 0o700) })
			if err = to.fail("mkdir", below, err); err == nil {
				err = t.cloneDir(from, below, i, to)
			}
		} else {
			err = t.cloneFile(from, below, i, to)
		}
		if err != nil {
			return err
		}
	}
	attrs, err := from.layerAttributes(path)
	if err != nil {
		return err
	}
	return to.setAttributes(path, dir, attrs)
}

func (t *Txn) cloneFile(from *tree, path string, i inode, to *tree) error {
	err := from.parent(path, func(ffd int, fname string) error {
		return to.parent(path, func(tfd int, tname string) error {
			if i.whiteout {
				return unix.Mknodat(tfd, tname, unix.S_IFCHR, 0) // all whiteouts are one inode, which has only so many links
			}
			return unix.Linkat(ffd, fname, tfd, tname, 0)
		})
	})
	if err != nil || i.kind != regular || i.mode&0o400 != 0 {
		return to.fail("link", path, err)
	}
	// A landing that was taken back had given it its own mode.
	if _, known := t.modes[path]; !known {
		t.modes[path] = i.mode
	}
	return to.chmod(path, i.mode|0o400)
}
