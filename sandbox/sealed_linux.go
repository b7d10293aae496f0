package sandbox

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// memoryFile makes a file that lies in memory and has no name.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, setupError("create memory file", "", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// sealed is the file of sealedSelf.
var sealed struct {
	mu   sync.Mutex
	file *os.File
}

// sealedSelf is sealSelf, once for all backends of this process. The file is never closed.
func sealedSelf() (_ *os.File, err error) {
	sealed.mu.Lock()
	defer sealed.mu.Unlock()
	if sealed.file == nil {
		sealed.file, err = sealSelf()
	}
	return sealed.file, err
}

// sealSelf copies the running binary into memory and seals it, to be executed as init and janitor. A
// payload that got at init's /proc/PID/exe would find a file that nobody can write, instead of the
// host's binary; and an upgrade on disk while the server runs changes nothing.
func sealSelf() (*os.File, error) {
	self, err := os.Open(ownBinary())
	if err != nil {
		return nil, setupError("open own binary", ownBinary(), err)
	}
	defer self.Close()

	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("airlock", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("airlock", flags) // before Linux 6.3 all were executable
	}
	if err != nil {
		err := setupError("create memory file", "", err)
		if e := new(SetupError); errors.As(err, &e) && errors.Is(err, unix.EACCES) {
			e.Hint = "vm.memfd_noexec is 2, so that no program may be executed from memory, as init is; allow it with: sudo sysctl vm.memfd_noexec=1"
		}
		return nil, err
	}
	copied := os.NewFile(uintptr(fd), "airlock")
	if err := copyAll(copied, self); err != nil {
		copied.Close()
		return nil, setupError("copy own binary", "", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(copied.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		copied.Close()
		return nil, setupError("seal own binary", "", err)
	}
	return copied, nil
}

// copyAll copies a file within the kernel, which takes half the time, as far as the filesystem lets it.
func copyAll(to, from *os.File) error {
	for {
		n, err := unix.Sendfile(int(to.Fd()), int(from.Fd()), nil, 1<<30)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			_, err := io.Copy(to, from)
			return err
		case n == 0:
			return nil
		}
	}
}
