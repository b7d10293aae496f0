//go:build unix

package main

import "golang.org/x/sys/unix"

// signalNumber is the number of a signal by its name, 0 if there is none of that name.
func signalNumber(name string) int { return int(unix.SignalNum(name)) }
