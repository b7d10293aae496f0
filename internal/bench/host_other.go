//go:build !linux

package main

import "errors"

func describeHost(string) (string, error) {
	return "", errors.New("runs are isolated on Linux only, so there is nothing to measure here")
}
