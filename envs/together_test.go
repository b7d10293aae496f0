package envs_test

import (
	"errors"
	"sync"
	"testing"

	"airlock/envs"
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
