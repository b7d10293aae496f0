//go:build !linux

// Package hugeheap does nothing on systems that are not Linux.
package hugeheap

// Extend does nothing.
func Extend() {}
