package envs

import (
	"strings"
	"testing"
)

// A repository of R packages is judged before anything is begun.
func TestRepositoryOnLoopback(t *testing.T) {
	c := &Conversation{packages: Packages{R: RPackages{Repo: "http://localhost:8000"}}}
	if _, err := c.rIndex(t.Context(), nil, nil, nil, Environment{}); err == nil || !strings.HasPrefix(err.Error(), "packages.r.repo is at localhost:8000, ") {
		t.Errorf("%v", err)
	}
}

func TestIndexOnLoopback(t *testing.T) {
	for address, own := range map[string]bool{
		"http://127.0.0.1:3141/simple": true, "http://127.8.0.1/simple": true, "http://[::1]:3141/": true, "http://[::ffff:127.0.0.1]/": true,
		"http://localhost:3141/": true, "http://LocalHost./": true, "http://a.localhost/": true, "http://user:secret@localhost/": true, "http://0.0.0.0:1/": true,
		"https://pypi.org/simple": false, "http://here.test:3141/": false, "http://10.0.0.1/": false, "http://localhost.test/": false,
	} {
		err := checkNotOwn("packages.index", address)
		if (err != nil) != own {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "packages.index is at ")) {
			t.Errorf("%s: %v", address, err)
		}
	}
	const want = `packages.r.repo is at localhost:8000, which is the installer's own sandbox in there and never this machine. The user can give this machine a name: ` +
		`network.resolve = {"here.test" = "127.0.0.1"} and network.private = ["127.0.0.1/32"], and packages.r.repo with here.test:8000 in place of localhost:8000`
	if err := checkNotOwn("packages.r.repo", "http://localhost:8000/cran"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
