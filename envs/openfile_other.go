//go:build !unix

package envs

import "os"

func openRegular(path string) (*os.File, error) { return os.Open(path) }
