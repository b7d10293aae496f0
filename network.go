package main

import (
	"bytes"
	"sync"

	"airlock/proxy"
)

// network gives each run the way out that the configuration allows at its start. The user's file is read
// again for each, so that a host that the user allows is reached by the next run, and one that is taken
// away is not. What can't be read allows nothing.
type network struct {
	read   func() (text []byte, err error) // the user's file
	decide func() (settings, error)        // the settings in force with it

	mu      sync.Mutex
	changed func(settings) // if not nil, is told that a changed file came into force, with what is in force then
	known   bool
	text    []byte // of the file that gateway was made by
	gateway *proxy.Gateway
	err     error
}

// newNetwork is the network of a workspace that was opened. Of what is read again only [network] comes
// into force; the project's policy is the one that was judged when the workspace was opened.
func (s setup) newNetwork(o opened) *network {
	return &network{
		read: s.file.read,
		decide: func() (settings, error) {
			user, err := s.reread()
			if err != nil || o.policy == nil {
				return user, err
			}
			return user.under(o.policy, o.trusted)
		},
	}
}

// tell has changed called whenever a changed file came into force.
func (n *network) tell(changed func(settings)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = changed
}

// current returns the gateway for a run that starts now; nil if its network is closed.
func (n *network) current() (*proxy.Gateway, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text, err := n.read()
	if err != nil {
		n.known = false
		return nil, forModel(err)
	}
	if n.known && bytes.Equal(text, n.text) {
		return n.gateway, n.err
	}
	again := n.known
	n.known, n.text = true, text
	var s settings
	s, n.gateway, n.err = n.make()
	if again && n.err == nil && n.changed != nil {
		n.changed(s) // where there is an error, the run's result says so
	}
	return n.gateway, n.err
}

func (n *network) make() (settings, *proxy.Gateway, error) {
	s, err := n.decide()
	if err != nil {
		return s, nil, forModel(err)
	}
	if s.Network.Mode == "deny" {
		return s, nil, nil
	}
	gateway, err := proxy.NewGateway(s.Network, nil)
	return s, gateway, err
}
