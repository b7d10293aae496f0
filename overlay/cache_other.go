//go:build !linux

package overlay

import "context"

// Cache is the directory that the runs of one workspace have as ~/.cache. There is none on this system.
type Cache struct{}

// OpenCache fails: a cache is below an overlay.
func OpenCache(stateDir, workspace string, limit int64, uid, gid int) (*Cache, error) {
	return nil, errUnsupported
}

// Files returns nothing.
func (c *Cache) Files() string { return "" }

// Free fails.
func (c *Cache) Free() (int64, error) { return 0, errUnsupported }

// RemoveBeside does nothing.
func (c *Cache) RemoveBeside() {}

// Close does nothing.
func (c *Cache) Close() error { return nil }

// Begin fails.
func (c *Cache) Begin(ctx context.Context, run string) (*CacheTxn, error) {
	return nil, errUnsupported
}

// LandWaiting fails.
func (c *Cache) LandWaiting(ctx context.Context, run string) error { return errUnsupported }

// DiscardWaiting fails.
func (c *Cache) DiscardWaiting(ctx context.Context, run string) error { return errUnsupported }

// KeepWaiting fails.
func (c *Cache) KeepWaiting(ctx context.Context, waiting func() ([]string, error)) error {
	return errUnsupported
}

// CacheTxn is what one run has of the cache.
type CacheTxn struct{}

// Layer returns nothing.
func (t *CacheTxn) Layer() Layer { return Layer{} }

// Usage fails.
func (t *CacheTxn) Usage(ctx context.Context) (int64, error) { return 0, errUnsupported }

// FinalUsage fails.
func (t *CacheTxn) FinalUsage(ctx context.Context) (int64, error) { return 0, errUnsupported }

// Land fails.
func (t *CacheTxn) Land(ctx context.Context) error { return errUnsupported }

// Park fails.
func (t *CacheTxn) Park() error { return errUnsupported }

// Discard does nothing.
func (t *CacheTxn) Discard() error { return nil }
