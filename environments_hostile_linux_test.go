package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"airlock/envs/envstest"
)

// Whatever an index serves, nothing is installed of it, nothing is left, and the error names it. It is the host's
// own pip that meets each of these; what is refused before pip sees it is in envs, TestHostileWheels. All are
// packages of one index, since each start of pip is a second of a processor.
func TestHostileIndexes(t *testing.T) {
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	page := func(name, link string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><body><a href=\"/files/%s#sha256=%s\">%[1]s</a></body></html>", link, strings.Repeat("0", 64))
		}
	}
	wheel := func(name string, requires ...string) envstest.Wheel {
		return envstest.Wheel{Name: name, Version: "1.0", Requires: requires}
	}
	forged, endless := wheel("forged"), wheel("endless")
	index := serveIndex(t, []envstest.Wheel{
		{Name: "replaces", Version: "1.0", Files: map[string]string{"replaces-1.0.data/scripts/python": "#!python\n"}},
		wheel("direct", "leaf @ file:///tmp/evil/leaf-1.0-py3-none-any.whl"),
	}, map[string]http.HandlerFunc{
		"/simple/away/": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test:1234/simple/away/", http.StatusFound)
		},
		"/simple/forged/":         page("forged", forged.File()),
		"/files/" + forged.File(): func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(forged.Bytes()) },
		"/simple/endless/":        page("endless", endless.File()),
		"/files/" + endless.File(): func(w http.ResponseWriter, r *http.Request) {
			block := bytes.Repeat([]byte("<a href='x'>"), 1<<14)
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
	})
	in := openWithPackages(t, t.TempDir(), "[limits]\ndisk = \"32MiB\"\n[packages]\nhosts = []\nindex = \"http://index.test:"+index.port()+
		"/simple\"\nallow = [\"replaces\", \"direct\", \"away\", \"forged\", \"endless\"]\n")
	for name, want := range map[string]string{
		"replaces": "a part of the environment itself", "direct": "resolved", "away": "elsewhere.test:1234", "forged": "resolved", "endless": "limits.disk",
	} {
		if err := in.install(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
		if left := in.left(); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
		if e, err := in.conv.Store().Environment("default"); err != nil || len(e.Packages) > 0 {
			t.Errorf("%s: the environment holds %v, %v", name, e.Packages, err)
		}
	}
}
