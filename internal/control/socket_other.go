//go:build !linux

package control

import (
	"context"
	"errors"
	"net"
)

func listen(string, string) (net.Listener, error) { return nil, errors.ErrUnsupported }

func dial(context.Context, string, string) (net.Conn, error) { return nil, errors.ErrUnsupported }

func refused(error) bool { return false }
