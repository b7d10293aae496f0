package overlay

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// marker is a moment on the clock that the workspace's filesystem stamps its inodes with. An entry
// whose ctime is at or after it changed after the moment, and one that is before it did not: a ctime
// cannot be set by hand.
type marker struct {
	at stamp
	// notBefore and notAfter bound the same moment on a clock that nobody sets. A process that waits
	// for a CPU can be long between two readings.
	notBefore, notAfter time.Duration
}

// takeMarker reads the moment from an inode without a name, made in the directory dir.
func takeMarker(ctx context.Context, dir *tree) (marker, error) {
	fd, err := unnamed(dir)
	if err != nil {
		return marker{}, err
	}
	defer unix.Close(fd)
	return readMarker(ctx, fd)
}

// readMarker reads the moment from an inode that is ours.
//
// Kernels before 6.13 stamp with the tick of the last timer interrupt, so that a change made just
// before this call could have the same stamp as one made just after. The stamp is therefore renewed
// until it has moved on: everything earlier has an earlier one then.
func readMarker(ctx context.Context, fd int) (marker, error) {
	var first inode
	for n := 0; ; n++ {
		notBefore := sinceBoot()
		if err := unix.Fchmod(fd, 0o600); err != nil {
			return marker{}, fmt.Errorf("chmod marker: %w", err)
		}
		now, err := statAt(fd, "")
		if err != nil {
			return marker{}, err
		}
		if n == 0 {
			first = now
			continue
		}
		if first.ctime != now.ctime {
			// A clock that was set back in this very moment gives an earlier stamp, which is as good:
			// it only makes more entries look changed.
			return marker{now.ctime, notBefore, sinceBoot()}, nil
		}
		select {
		case <-ctx.Done():
			return marker{}, context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// clock is takeMarker for who asks again and again: an inode takes longer to make than to stamp.
type clock struct {
	mu   sync.Mutex
	file *os.File // nil until it is needed
}

// now reads the moment on the filesystem of dir, which is the same at each call.
func (c *clock) now(ctx context.Context, dir *tree) (marker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		fd, err := unnamed(dir)
		if err != nil {
			return marker{}, err
		}
		c.file = os.NewFile(uintptr(fd), "clock")
	}
	return readMarker(ctx, int(c.file.Fd()))
}

// close lets go of the inode.
func (c *clock) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

func unnamed(dir *tree) (int, error) {
	const flags = unix.O_RDWR | unix.O_CLOEXEC
	fd, err := unix.Openat(dir.fd, ".", flags|unix.O_TMPFILE, 0o600)
	if err == nil {
		return fd, nil
	}
	if err != unix.EOPNOTSUPP && err != unix.EISDIR && err != unix.ENOENT {
		return -1, dir.fail("create marker in", "", err)
	}
	// A filesystem without unnamed files: the directory is ours alone, so a name does no harm.
	name := fmt.Sprintf("marker-%d-%d", os.Getpid(), time.Now().UnixNano())
	fd, err = unix.Openat(dir.fd, name, flags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return -1, dir.fail("create marker in", "", err)
	}
	return fd, dir.fail("remove", name, unix.Unlinkat(dir.fd, name, 0))
}

func sinceBoot() time.Duration {
	var ts unix.Timespec
	// CLOCK_BOOTTIME counts through suspends, as the clock of the stamps does. It cannot fail.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return time.Duration(ts.Nano())
}

// steadyUntil reports whether the clock of the stamps went on between the two markers. If it was
// set back, a change can have an earlier stamp than m, and no stamp says anything.
func (m marker) steadyUntil(later marker) bool {
	stamped := time.Duration(later.at.sec-m.at.sec)*time.Second + time.Duration(later.at.nsec) - time.Duration(m.at.nsec)
	passed := later.notBefore - m.notAfter // at least
	// A clock that is slewed towards its source loses 0.05 % at most, a coarse stamp one tick.
	return stamped >= passed-passed/1000-20*time.Millisecond
}

// ctimeTrusted reports whether the filesystem of an open directory stamps with the clock of this
// host, and keeps the stamps.
func ctimeTrusted(dir *tree) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(dir.fd, &st); err != nil {
		return false, dir.fail("statfs", "", err)
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.AFS_SUPER_MAGIC,
		unix.CODA_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC,
		// These keep one time for both, which can be set.
		unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		return false, nil
	}
	return true, nil
}
