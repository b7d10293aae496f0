package main

import (
	"bytes"
	"compress/gzip"
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
	forged, endless, hides := wheel("forged"), wheel("endless"), wheel("hides", "leaf")
	ran := false // what is a package's code
	var index *fixtureIndex
	index = serveIndex(t, []envstest.Wheel{
		wheel("leaf"),
		{Name: "replaces", Version: "1.0", Files: map[string]string{"replaces-1.0.data/scripts/python": "#!python\n"}},
		wheel("direct", "leaf @ file:///tmp/evil/leaf-1.0-py3-none-any.whl"),
	}, map[string]http.HandlerFunc{
		"/simple/away/": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test:1234/simple/away/", http.StatusFound)
		},
		"/simple/barred/": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "\x1b[2Jno", http.StatusForbidden) },
		// Its page unpacks to 4 GiB.
		"/simple/bomb/": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			part := gzipped(bytes.Repeat([]byte(" "), 16<<20))
			for range 256 {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		},
		// There are only its sources, whose build would say that it runs.
		"/simple/source/": page("source", "source-1.0.tar.gz"),
		"/files/source-1.0.tar.gz": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(sourceOf(t, "source", "import urllib.request\nurllib.request.urlopen('http://index.test:"+index.port()+"/ran')\n"))
		},
		"/ran": func(http.ResponseWriter, *http.Request) { ran = true },
		// What the index says that it requires is not what the wheel says.
		"/simple/hides/": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><body><a href=\"/files/%s#sha256=%s\" data-dist-info-metadata=\"true\">%[1]s</a></body></html>", hides.File(), hides.SHA256())
		},
		"/files/" + hides.File() + ".metadata": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "Metadata-Version: 2.1\nName: hides\nVersion: 1.0\n")
		},
		"/files/" + hides.File():  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(hides.Bytes()) },
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
	in := openWithPackages(t, t.TempDir(), "[limits]\ndisk = \"32MiB\"\nmemory = \"512MiB\"\n[packages]\nhosts = []\nindex = \"http://index.test:"+index.port()+
		"/simple\"\nallow = [\"replaces\", \"direct\", \"away\", \"forged\", \"endless\", \"bomb\", \"source\", \"hides\", \"barred\", \"leaf\"]\n")
	for name, want := range map[string]string{
		"replaces": "a part of the environment itself", "direct": "/tmp/evil/leaf-1.0-py3-none-any.whl", "away": "elsewhere.test:1234", "forged": "DO NOT MATCH", "endless": "limits.disk",
		"barred": "the index answered 403 when it was asked for barred", "bomb": "limits.memory", "source": "No matching distribution found for source", "hides": "hides 1.0 requires leaf, which is not there",
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
	if ran {
		t.Error("code of a package was executed")
	}
	// The same index is good for what is honest.
	if err := in.install("leaf"); err != nil {
		t.Errorf("leaf: %v", err)
	}
}

// That nothing answers at the index, or that there is no such host, is said as that: pip takes it for a package that
// does not exist.
func TestIndexThatIsNotThere(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(gone.URL, "http://"), ":")
	for index, want := range map[string]string{
		"http://index.test:" + port + "/simple": "index.test:" + port + " could not be reached: dial tcp 127.0.0.1:" + port + ": connect: connection refused",
		"http://127.0.0.1:" + port + "/simple":  "packages.index is at 127.0.0.1:" + port + ", which is the installer's own sandbox",
		"https://nowhere.invalid/simple":        "nowhere.invalid:443 could not be reached: ",
	} {
		in := openWithPackages(t, t.TempDir(), "[packages]\nhosts = []\nindex = \""+index+"\"\nallow = [\"leaf\"]\n")
		if err := in.install("leaf"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "No matching") || strings.Contains(err.Error(), "502") {
			t.Errorf("%s: %v, want %q", index, err, want)
		}
		if left := in.left(); len(left) > 0 {
			t.Errorf("%s: left %q", index, left)
		}
	}
}

func gzipped(content []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(content) // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// sourceOf is a source archive whose build executes some code.
func sourceOf(t *testing.T, name, code string) []byte {
	t.Helper()
	return tarOf(t, map[string]string{
		name + "-1.0/setup.py": code + "from setuptools import setup\nsetup(name='" + name + "', version='1.0')\n",
		name + "-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n",
	})
}
