//go:build !linux

package runcache

import (
	"context"
	"errors"
)

// Cache is the cache of one workspace.
type Cache struct{}

// Open fails: there are no sandboxed runs on this system.
func Open(_, _ string, _ int64, _, _ int) (*Cache, error) {
	return nil, errors.New("cache of runs: not on this system")
}

// Files is the directory that runs see.
func (*Cache) Files() string { return "" }

// Use fails.
func (*Cache) Use() (release func(), err error) {
	return nil, errors.New("cache of runs: not on this system")
}

// Free fails.
func (*Cache) Free() (int64, error) { return 0, errors.New("cache of runs: not on this system") }

// Measure does nothing.
func (*Cache) Measure() {}

// Grown does nothing.
func (*Cache) Grown(context.Context, func(bytes int64)) {}

// Close does nothing.
func (*Cache) Close() {}

// Clean finds nothing.
func Clean(context.Context, string, string, bool) ([]Cleaned, error) { return nil, nil }
