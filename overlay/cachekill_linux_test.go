package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A server that is killed at any point of a landing leaves some of the cache as it was and some as it shall be, each
// file and each new directory whole; the next one goes on from there.
func TestCacheSurvivesAKill(t *testing.T) {
	killed := errors.New("killed")
	write := func(dir string, content map[string]string) {
		t.Helper()
		for name, text := range content {
			name = filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	const limit = 1 << 30
	for n, over := 1, false; !over; n++ {
		f := newCache(t, limit)
		write(f.Files(), map[string]string{"both/f": "old", "both/gone": "old", "m/f": "old", "f": "old"})
		txn := f.after("")
		write(txn.upper.path, map[string]string{"both/f": "new", "both/n/a": "new", "both/n/b": "new", "m/f": "new", "f/a": "new", "f/b": "new"})
		if err := errors.Join(
			os.Chmod(filepath.Join(f.Files(), "m"), 0o555), os.Chmod(filepath.Join(txn.upper.path, "m"), 0o555),
			unix.Mknod(filepath.Join(txn.upper.path, "both", "gone"), unix.S_IFCHR, 0),
			unix.Setxattr(filepath.Join(txn.upper.path, "f"), "user.overlay.opaque", []byte("y"), 0),
		); err != nil {
			t.Fatal(err)
		}
		calls := 0
		hook := func() {
			if calls++; calls == n {
				panic(killed)
			}
		}
		f.files.hook, txn.upper.hook = hook, hook
		func() {
			defer func() { over = recover() == nil }()
			f.land(txn)
		}()
		if f.files.hook = nil; !over {
			f.scratch.leave() // as the kernel does for the dead
			txn.using.Unlock()
			f.Cache.leave()
			f.reopen(limit)
			f.nothingLeft()
		}
		got := strings.ReplaceAll(f.content(), "m/755", "m/555") // it can be left open
		for part, wants := range map[string][]string{
			"both/f": {"both/f=old", "both/f=new"}, "both/n": {"", "both/n/755 both/n/a=new both/n/b=new"},
			"f": {"f=old", "f/755 f/a=new f/b=new"}, "m": {"m/555 m/f=old", "m/555 m/f=new"},
		} {
			var has []string
			for _, entry := range strings.Fields(got) {
				if strings.HasPrefix(entry, part+"=") || strings.HasPrefix(entry, part+"/") {
					has = append(has, entry)
				}
			}
			if have := strings.Join(has, " "); have != wants[1] && (over || have != wants[0]) {
				t.Errorf("killed at %d: %s is %q", n, part, have)
			}
		}
		if over {
			t.Logf("%d points", n-1)
			if n < 20 {
				t.Error("these are too few")
			}
		}
	}
}
