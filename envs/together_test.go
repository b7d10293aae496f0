package envs_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"airlock/envs"
	"airlock/internal/filelock"
)

// Several servers at once install the same and different sets; nothing is lost.
func TestTogether(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six", "needs-six", "flex", "zope-interface", "sixx"}
	all := []string{"six==1.17.0", "needs-six", "flex", "zope-interface", "sixx", "needs-six", "six==1.17.0", "sixx"}
	var work sync.WaitGroup
	for _, requirement := range all {
		c := w.begin()
		work.Go(func() {
			for range 50 {
				_, _, err := install(c, "default", requirement)
				if err == nil {
					return
				}
				if !errors.Is(err, envs.ErrChanged) {
					t.Errorf("%s: %v", requirement, err)
					return
				}
			}
			t.Errorf("%s: changed meanwhile each time", requirement)
		})
	}
	work.Wait()
	c := w.begin()
	e, err := c.Store().Environment("default")
	if got := set(e.Packages); err != nil || got != "flex 2.0, needs-six 1.0, six 1.17.0, sixx 1.0, zope-interface 5.0" {
		t.Errorf("has %q, %v", got, err)
	}
	w.clean()
}

// Who begins while others look for what the dead have left is not taken for one of them.
func TestBeginTogether(t *testing.T) {
	w := newWorld(t)
	store := w.begin().Store()
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for ctx.Err() == nil {
				locks, _ := filepath.Glob(filepath.Join(w.dir, "*", "*.lock"))
				for _, path := range locks {
					if held, err := filelock.Try(path, filelock.Alone); err == nil {
						held.Unlock()
					}
				}
			}
		})
	}
	for range 300 {
		c, err := envs.Begin(t.Context(), envs.Options{Store: store, Installer: w.installer, Packages: w.config, Python: w.python})
		if err != nil {
			t.Error(err)
			break
		}
		_ = c.Close()
	}
	stop()
	looking.Wait()
}
