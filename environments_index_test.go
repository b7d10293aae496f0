package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"airlock/envs"
	"airlock/envs/envstest"
)

// fixtureIndex serves wheels as a package index does.
type fixtureIndex struct {
	*httptest.Server
	requests atomic.Int64
	mu       sync.Mutex        // of pages and files
	pages    map[string]string // by the path of a request
	files    map[string][]byte
	before   func(*http.Request) // is told of each request before its answer; nil for none
}

// port is that of the index at index.test.
func (i *fixtureIndex) port() string {
	return i.URL[strings.LastIndex(i.URL, ":")+1:]
}

// serveIndex serves wheels, and what other says first: by the path of a request.
func serveIndex(t *testing.T, wheels []envstest.Wheel, other map[string]http.HandlerFunc) *fixtureIndex {
	t.Helper()
	index := indexOf(wheels, other)
	index.Start()
	t.Cleanup(index.Close)
	return index
}

// indexOf is one that does not serve yet.
func indexOf(wheels []envstest.Wheel, other map[string]http.HandlerFunc) *fixtureIndex {
	index := &fixtureIndex{pages: map[string]string{}, files: map[string][]byte{}}
	for _, w := range wheels {
		index.file(w.Name, w.File(), w.Bytes(), w.Yanked)
	}
	index.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		index.requests.Add(1)
		if index.before != nil {
			index.before(r)
		}
		index.mu.Lock()
		page, isPage := index.pages[r.URL.Path]
		body, isFile := index.files[r.URL.Path]
		index.mu.Unlock()
		if h := other[r.URL.Path]; h != nil {
			h(w, r)
		} else if isPage {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><body>%s</body></html>", page)
		} else if isFile {
			_, _ = w.Write(body)
		} else {
			http.NotFound(w, r)
		}
	}))
	return index
}

// add adds wheels by the name of their file.
func (i *fixtureIndex) add(wheels map[string][]byte) {
	for file, body := range wheels {
		name, _, _ := strings.Cut(file, "-")
		i.file(name, file, body, false)
	}
}

func (i *fixtureIndex) file(name, file string, body []byte, isYanked bool) {
	yanked := ""
	if isYanked {
		yanked = ` data-yanked="broken"`
	}
	i.put(file, body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pages["/simple/"+envs.NormalizeName(name)+"/"] += fmt.Sprintf("<a href=\"/files/%s#sha256=%x\"%s>%[1]s</a>\n", file, sha256.Sum256(body), yanked)
}

// put serves a file that no page names.
func (i *fixtureIndex) put(file string, body []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.files["/files/"+file] = body
}
