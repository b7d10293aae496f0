package tools

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"airlock/proxy"
	"airlock/sandbox"
)

// egress is the way out of one run.
type egress struct {
	gateway *proxy.Gateway
	ports   sandbox.Egress
	session *proxy.Session // from attach on
}

// egress gives the way out of a run that starts now; nil where it has none, and why if that is a fault.
func (w *WorkspaceRunner) egress() (_ *egress, fault string) {
	if w.network == nil || w.backend.Unconfined() {
		return nil, ""
	}
	gateway, err := w.network()
	if err != nil {
		return nil, "the network of this run was closed: " + err.Error()
	}
	if gateway == nil {
		return nil, ""
	}
	return &egress{gateway: gateway, ports: w.ports}, ""
}

// networkClosed is for a run without a way out that looked for one.
const networkClosed = `the network is closed (network.mode is "deny"), and the run wanted to reach an address or a name outside; ` +
	"only the user can open it, in a terminal: airlock allow HOST"

// firstEgressPort and its followers are given to no program by the kernel itself (ip_local_port_range ends
// at 60999), so that a program that binds the port it is configured for finds it free.
const firstEgressPort = 61000

// choosePorts gives the ports of the runs of one server. They are the same for all of them, since the sandbox of a run is
// begun before there is one.
func choosePorts() sandbox.Egress {
	first := firstEgressPort + rand.IntN(2000)
	return sandbox.Egress{RedirectPort: first, ProxyPort: first + 1 + rand.IntN(2000)}
}

// attach puts the run's sockets in the gateway's hands.
func (e *egress) attach(s sandbox.Sockets) error {
	e.session = e.gateway.Serve(proxy.Listeners{
		Redirected: s.Redirected, Listen: s.Listen, Proxy: s.Proxy, Queries: s.Queries, QueryStream: s.QueryStream,
	})
	return nil
}

// close ends what the run has open, and says what it was refused.
func (e *egress) close(r *Result) {
	if e.session == nil {
		return
	}
	e.session.Close()
	denied, more := e.session.Denied()
	r.Network.refusals = denied
	for _, d := range denied {
		r.Network.Denied = append(r.Network.Denied, d.Destination())
	}
	if entry := toAllow(denied); entry != "" {
		r.Notes = append(r.Notes, "only the user can open the network, in a terminal: airlock allow "+entry)
	}
	if note := notReached(e.unreached()); note != "" {
		r.Notes = append(r.Notes, note)
	}
	if more > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the network refused %d further destinations", more))
	}
}

// unreached says, after close, what was allowed and never reached.
func (e *egress) unreached() []string {
	if e.session == nil {
		return nil
	}
	var all []string
	for _, u := range e.session.Unreached() {
		all = append(all, oneLine(u.Error()))
	}
	return all
}

// toAllow gives what would have to be in network.allow for the first refusal that it would mend.
func toAllow(denied []proxy.DeniedError) string {
	for _, d := range denied {
		switch {
		case !d.Unlisted():
		case d.Port == 0 || d.Port == 80 || d.Port == 443:
			return d.Host
		default:
			return d.Destination()
		}
	}
	return ""
}

// attachTo makes a run use the egress.
func (e *egress) attachTo(spec *sandbox.Spec) {
	spec.Network, spec.Egress = sandbox.NetworkRedirected, e.ports
	spec.Mounts = slices.Clone(spec.Mounts)
	for i, m := range spec.Mounts {
		if m.Kind == sandbox.MountFile && m.Target == "/etc/resolv.conf" {
			spec.Mounts[i].Content = []byte(sandbox.ResolvConf)
		}
	}
	spec.Env = slices.Clone(spec.Env)
	for _, variable := range e.environ() {
		name, _, _ := strings.Cut(variable, "=")
		// What the user or the call says goes before it.
		if !slices.ContainsFunc(spec.Env, func(set string) bool { return strings.HasPrefix(set, name+"=") }) {
			spec.Env = append(spec.Env, variable)
		}
	}
}

// environ tells programs of the proxy, in the two spellings that they look for. Those that know of none
// are redirected.
func (e *egress) environ() []string {
	at := fmt.Sprintf("127.0.0.1:%d", e.ports.ProxyPort)
	var env []string
	for _, v := range []struct{ name, value string }{
		{"http_proxy", "http://" + at},
		{"https_proxy", "http://" + at},
		{"all_proxy", "socks5h://" + at},
		{"no_proxy", "localhost,127.0.0.1,::1"},
	} {
		env = append(env, v.name+"="+v.value, strings.ToUpper(v.name)+"="+v.value)
	}
	return env
}

// maxNamed is how many destinations the text names for one reason. The structure has all of them: else a run that asks for
// names without end would fill the text with them.
const maxNamed = 10

// notReached is the note on what was allowed and never reached; "" for nothing.
func notReached(unreached []string) string {
	if len(unreached) == 0 {
		return ""
	}
	named, more := unreached, ""
	if len(named) > maxNamed {
		named, more = named[:maxNamed], fmt.Sprintf(", and %d more", len(named)-maxNamed)
	}
	return "the network allows it, but " + strings.Join(named, "; ") + more
}

// networkLine says what was refused, with the reasons, for the text of a result.
func networkLine(refusals []proxy.DeniedError) string {
	var reasons []string
	byReason := map[string][]string{}
	for _, d := range refusals {
		if byReason[d.Reason] == nil {
			reasons = append(reasons, d.Reason)
		}
		byReason[d.Reason] = append(byReason[d.Reason], d.Destination())
	}
	var parts []string
	for _, r := range reasons {
		named := byReason[r]
		more := ""
		if len(named) > maxNamed {
			named, more = named[:maxNamed], fmt.Sprintf(" and %d more", len(named)-maxNamed)
		}
		parts = append(parts, fmt.Sprintf("%s%s (%s)", strings.Join(named, ", "), more, r))
	}
	return "network: refused " + strings.Join(parts, "; ")
}
