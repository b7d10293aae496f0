package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// The name of a socket holds 107 bytes, which a path can exceed: the directory is named by a descriptor.

func listen(dir, name string) (net.Listener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: within(d, name)})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then the descriptor may be another
	return l, nil
}

func dial(ctx context.Context, dir, name string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return new(net.Dialer).DialContext(ctx, "unix", within(d, name))
}

func within(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}

func refused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }
