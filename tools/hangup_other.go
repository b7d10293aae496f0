//go:build !linux

package tools

import "io"

// watchHangup does nothing here: that the client is gone is noticed when something is written to it.
func watchHangup(io.Writer, func(error)) (stop func()) { return func() {} }
