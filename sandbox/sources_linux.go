package sandbox

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// sources holds, as detached mounts, what every run sees, whatever else it sees. They are made while the host's
// root is still in place.
type sources struct {
	root  handle            // the new, empty root
	proc  handle            // a /proc of the new pid namespace
	pts   handle            // a devpts of its own
	nodes map[string]handle // device name to a clone of the host's node
}

// openSources makes the mounts of the skeleton out of the host's root.
func openSources(host handle) (*sources, error) {
	s := &sources{nodes: map[string]handle{}}
	// Nothing that happens to mounts in here is to reach the host, and the other way round.
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
		return nil, setupError(opPrivateMounts, "/", err)
	}
	var err error
	if s.root, err = newMount("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, option{"mode", "0755"}); err != nil {
		return nil, err
	}
	// The kernel allows a new /proc only where one is visible in full, hence before the root is left.
	if s.proc, err = newMount("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC); err != nil {
		e := new(SetupError)
		if errors.As(err, &e) && errors.Is(err, unix.EPERM) {
			e.Hint = "parts of the host's /proc are covered, as container runtimes do; start the container with --security-opt systempaths=unconfined (Docker) or unmask=ALL (Podman)"
		}
		return nil, err
	}
	if s.pts, err = newMount("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC,
		option{"newinstance", ""}, option{"ptmxmode", "0666"}, option{"mode", "0620"}); err != nil {
		return nil, err
	}
	for _, name := range deviceNodes {
		// Read-only is about the node, not the device: its owner could else change its mode for the host.
		node, err := openBind(host, "/dev/"+name, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		if name == "tty" && err != nil {
			continue // of use only to programs that ask for a password
		}
		if err != nil {
			return nil, err
		}
		s.nodes[name] = node
	}
	return s, nil
}

// openSteps makes the mounts that steps need of the host, as detached ones, and gives each the index of its step. A
// step that is optional and whose source can't be had has none.
func openSteps(host handle, steps []step) (map[int]handle, error) {
	mounts := map[int]handle{}
	for i, st := range steps {
		if st.Do != doBind && st.Do != doOverlay {
			continue // it needs none
		}
		mount, err := openStep(host, st)
		if st.Optional && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		mounts[i] = mount
	}
	return mounts, nil
}

// openStep returns the mount that a step, a bind or an overlay, needs of the host.
func openStep(host handle, st step) (handle, error) {
	if st.Do == doOverlay {
		return openOverlay(host, st)
	}
	attrs := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if !st.Writable {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	return openBind(host, string(st.Source), attrs)
}

func openBind(host handle, source string, attrs uint64) (handle, error) {
	f, err := openPathOf(host, source)
	if err != nil {
		return handle{}, err
	}
	defer f.Close()
	return cloneMount(f, attrs)
}

// openOverlay makes the overlay of a step. It is volatile: a run that does not end well leaves nothing
// of its layer, so that syncing copied-up files (a millisecond each) would buy nothing.
func openOverlay(host handle, st step) (handle, error) {
	var layers [4]string // a path of a descriptor has no character that the options give a meaning
	for i, p := range []wire{st.Source, st.Mask, st.Upper, st.Work} {
		if p == "" {
			continue
		}
		f, err := openPathOf(host, string(p))
		if err != nil {
			return handle{}, err
		}
		defer f.Close()
		layers[i] = procPath(f)
	}
	attrs := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	lower := layers[0]
	if st.Mask != "" {
		lower = layers[1] + ":" + lower
	}
	options := []option{{"source", "airlock"}, {"lowerdir", lower}, {"userxattr", ""}}
	if st.Upper != "" {
		options = append(options, option{"upperdir", layers[2]}, option{"workdir", layers[3]}, option{"volatile", ""})
	} else {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	mount, err := newMount("overlay", attrs, options...)
	if err != nil {
		e := new(SetupError)
		if errors.As(err, &e) {
			e.Path = string(st.Source)
			if e.Op = OpMountOverlay; e.Hint == "" {
				e.Hint = "the workspace and its layer must lie on a filesystem that can be an overlay's (ext4, xfs, btrfs, tmpfs since Linux 6.6; not NFS, and not another overlay such as a container's own root)"
			}
		}
		return handle{}, err
	}
	return mount, nil
}
