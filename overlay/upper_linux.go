package overlay

import "golang.org/x/sys/unix"

// newUpper makes the two directories of a layer in dir, unless they were made ahead. The root of the merged view shows
// what the upper's is: lower says what that shall be. They belong to the owner of the workspace, whose identity runs have.
func newUpper(dir *tree, lower, owner inode) (upper *tree, err error) {
	if upper, err = dir.ensure(upperName, lower.mode); err != nil {
		return nil, err
	}
	work, err := dir.ensure(workName, 0o700)
	if err == nil {
		defer work.close()
		err = own(upper, work, owner)
	}
	if err == nil {
		err = upper.fail("chmod", "", unix.Fchmod(upper.fd, lower.mode)) // chown drops set-ID bits
	}
	if err != nil {
		upper.close()
		return nil, err
	}
	return upper, nil
}

func own(upper, work *tree, owner inode) error {
	if !rootRights() {
		// A group that we are not in can't be given; the files of the run get ours then.
		_ = unix.Fchown(upper.fd, -1, int(owner.gid))
		return nil
	}
	for _, d := range []*tree{upper, work} {
		if err := unix.Fchown(d.fd, int(owner.uid), int(owner.gid)); err != nil {
			return d.fail("chown", "", err)
		}
	}
	return nil
}

// copyRootAttributes gives the root of the layer the attributes of the workspace's that a run would see
// there and that new files obey, as a default access control list, and no other.
func (t *Txn) copyRootAttributes(root inode) error {
	want, err := t.w.root.attributes("")
	if err != nil {
		return err
	}
	return t.upper.through("", func(proc string) error {
		for _, name := range []string{accessList, defaultList} {
			if err := unix.Removexattr(proc, name); err != nil && !is(err, unix.ENODATA, unix.ENOTSUP) {
				return t.upper.fail("remove attributes of", "", err)
			}
		}
		for name, value := range want {
			if _, ours := overlayXattr(name); ours {
				continue
			}
			if err := unix.Setxattr(proc, name, value, 0); err != nil {
				return t.upper.fail("set attribute of", "", err)
			}
		}
		// A list has a part of the mode.
		return t.upper.fail("chmod", "", unix.Chmod(proc, root.mode))
	})
}
