package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"airlock/envs"
	"airlock/envs/envstest"
)

// fixtureIndex serves wheels as a package index does.
type fixtureIndex struct {
	*httptest.Server
	requests atomic.Int64
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
	pages, files := map[string]string{}, map[string][]byte{}
	for _, w := range wheels {
		files["/files/"+w.File()] = w.Bytes()
		yanked := ""
		if w.Yanked {
			yanked = ` data-yanked="broken"`
		}
		pages["/simple/"+envs.NormalizeName(w.Name)+"/"] += fmt.Sprintf("<a href=\"/files/%s#sha256=%s\"%s>%s</a>\n", w.File(), w.SHA256(), yanked, w.File())
	}
	index := &fixtureIndex{}
	index.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		index.requests.Add(1)
		if h := other[r.URL.Path]; h != nil {
			h(w, r)
		} else if page, ok := pages[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><html><body>%s</body></html>", page)
		} else if body, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(body)
		} else {
			http.NotFound(w, r)
		}
	}))
	return index
}
