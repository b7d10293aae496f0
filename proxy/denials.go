package proxy

import (
	"errors"
	"sync"
)

// maxDenials bounds what is remembered of the destinations that one run was refused.
const maxDenials = 100

// denials remembers what a run was refused, each destination once.
type denials struct {
	mu    sync.Mutex
	list  []DeniedError
	known map[string]bool
	more  int
}

// note remembers err if it is a refusal, and reports whether it is.
func (d *denials) note(err error) bool {
	denied := new(DeniedError)
	if !errors.As(err, &denied) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch key := denied.Destination(); {
	case d.known[key]:
	case len(d.list) == maxDenials:
		d.more++
	default:
		if d.known == nil {
			d.known = map[string]bool{}
		}
		d.known[key] = true
		d.list = append(d.list, *denied)
	}
	return true
}

// all returns what was noted, in the order of the first time, and how many refusals more there were than
// are remembered. A name that was asked for is left out where a port of it was refused as well.
func (d *denials) all() (list []DeniedError, more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ports := map[string]bool{}
	for _, e := range d.list {
		if e.Port != 0 {
			ports[e.Host] = true
		}
	}
	for _, e := range d.list {
		if e.Port != 0 || !ports[e.Host] {
			list = append(list, e)
		}
	}
	return list, d.more
}
