package proxy

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// UnreachedError says that the policy allows a destination, and that no connection to it could be had.
type UnreachedError struct {
	Host string // canonical
	Port int
	Err  error
}

// Error implements error.
func (e *UnreachedError) Error() string {
	return fmt.Sprintf("%s could not be reached: %s", net.JoinHostPort(e.Host, strconv.Itoa(e.Port)), toldToRun(e.Err))
}

// toldToRun is an error's text without what is the host's matter: which name was asked for is known, and which server of the
// host's was asked is nobody else's.
func toldToRun(err error) string {
	if lookup := new(net.DNSError); errors.As(err, &lookup) {
		return lookup.Err
	}
	return err.Error()
}

// Unwrap gives the network's word.
func (e *UnreachedError) Unwrap() error { return e.Err }

// unreached remembers the destinations of a run that it never got a connection to, each with the last cause. It is
// bounded as refusals are.
type unreached struct {
	mu      sync.Mutex
	list    []UnreachedError
	reached map[string]bool
}

// note remembers how an attempt to connect went. A *[DeniedError] is for denials.
func (u *unreached) note(host string, port int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	host = spelled(host)
	key := net.JoinHostPort(host, strconv.Itoa(port))
	if err == nil && len(u.reached) < maxDenials {
		if u.reached == nil {
			u.reached = map[string]bool{}
		}
		u.reached[key] = true
	}
	for i := range u.list {
		if u.list[i].Host == host && u.list[i].Port == port {
			u.list[i].Err = err
			return
		}
	}
	if err != nil && len(u.list) < maxDenials {
		u.list = append(u.list, UnreachedError{Host: host, Port: port, Err: err})
	}
}

// all returns what was never reached, in the order of the first attempts.
func (u *unreached) all() (list []UnreachedError) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range u.list {
		if e.Err != nil && !u.reached[net.JoinHostPort(e.Host, strconv.Itoa(e.Port))] {
			list = append(list, e)
		}
	}
	return list
}
