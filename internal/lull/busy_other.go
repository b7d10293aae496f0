//go:build !linux

package lull

func processorsBusy() bool { return false }
