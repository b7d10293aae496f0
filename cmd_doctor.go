package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"airlock/internal/units"
	"airlock/overlay"
	"airlock/proxy"
	"airlock/sandbox"
	"airlock/tools"
)

func doctorCommand() command {
	c := command{
		name:    "doctor",
		args:    "[flags] [--json]",
		summary: "what holds on this host, what does not, and the mend",
		help: `Probes each promise on this host, builds a sandbox once, and prints what holds, what
does not, and what to do about it. The workspace, if the working directory can be one
or another is named, is opened as for a run, with the project's policy and all that
runs are to read. The exit status is 0 if runs are possible, and 1 if they are not.

    airlock doctor --workspace ~/project

` + commonHelp + `    --json             print it as JSON
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		var common commonFlags
		common.register(flags)
		asJSON := flags.Bool("json", false, "")
		s, status, done := common.begin(a, c, flags, args)
		if done {
			return status
		}
		w := s.examine()
		d := diagnose(ctx, w.settings, a.environ)
		if err := s.places.enterState(); err != nil {
			d.refuse("state directory", "runs are possible, and can be taken back", err)
		} else {
			if c, ok := checkState(s.places.state); ok && !w.settings.Unconfined() {
				d.Checks = append(d.Checks, c)
			}
			d.enter(ctx, s.places, w, a.environ)
		}
		d.wait(s.places.state)
		print := func(w io.Writer) error { return d.print(w, a.paint(), a.columns()) }
		if *asJSON {
			print = d.printJSON
		}
		if err := print(a.stdout); err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		if !d.Possible {
			return exitFailed
		}
		return exitOK
	}
	return c
}

// diagnosis is what doctor says of a host.
type diagnosis struct {
	Possible    bool              `json:"runs_possible"`
	Backend     string            `json:"backend"`
	Why         string            `json:"backend_why,omitempty"`      // what speaks for it, as the end of a sentence
	Refused     []refused         `json:"backends_refused,omitempty"` // those that do not work here and were tried before
	Through     bool              `json:"written_directly,omitempty"` // sandboxed runs write to the workspace itself
	Workspace   string            `json:"workspace,omitempty"`        // that runs were judged in
	NoWorkspace string            `json:"no_workspace,omitempty"`     // why the working directory is none
	Cause       string            `json:"cause,omitempty"`            // why runs are not possible
	Mend        string            `json:"mend,omitempty"`
	Checks      []check           `json:"checks"`
	Held        map[string]string `json:"limits"` // by limit, the mechanism; "watch" where none holds it but airlock looks; "" where nothing does
	Waiting     []waitingRuns     `json:"waiting"`
	Notes       []idleNote        `json:"notes"`                  // what is configured and has no effect
	Root        bool              `json:"root,omitempty"`         // the server would be root's
	RootRefused bool              `json:"root_refused,omitempty"` // and runs of root's own are refused, since nothing holds their processes
}

// refused is a [sandbox.Refused] as the JSON has it.
type refused struct {
	Name  string `json:"name"`
	Cause string `json:"cause"`
}

// waitingRuns is an [overlay.WaitingRuns] as the JSON has it.
type waitingRuns struct {
	Workspace string   `json:"workspace"`
	Layers    string   `json:"layers"`
	Runs      []string `json:"runs"`
	Bytes     int64    `json:"bytes"`
	Gone      bool     `json:"gone,omitempty"` // there is no such workspace any more
	Fault     string   `json:"fault,omitempty"`
}

// wait notes what waits for review. It is never removed by itself, so someone has to be told.
func (d *diagnosis) wait(state string) {
	d.Waiting = []waitingRuns{}
	all, err := overlay.WaitingIn(state)
	if err != nil {
		d.Waiting = append(d.Waiting, waitingRuns{Runs: []string{}, Fault: err.Error()})
	}
	for _, one := range all {
		info, err := os.Stat(one.Workspace)
		d.Waiting = append(d.Waiting, waitingRuns{
			Workspace: overlay.Literal(one.Workspace), Layers: overlay.Literal(one.Layers), Runs: one.Runs, Bytes: one.Bytes,
			Gone: err != nil || !info.IsDir(),
		})
	}
}

// check is a [sandbox.Check] as the JSON has it.
type check struct {
	Name    string `json:"name"`
	Promise string `json:"promise"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail"`
	Mend    string `json:"mend,omitempty"`
}

// checkEgress judges what a probe of the network met.
func checkEgress(form sandbox.EgressForm, err error, s settings, environ []string) check {
	c := check{Name: "network", Promise: "runs reach the hosts that network allows", OK: err == nil}
	if err != nil {
		c.Detail, c.Mend = err.Error(), strings.Join(hintsOf(err), "; ")
		return c
	}
	c.Detail = "connections and names are redirected (nf_tables)"
	if form.Unredirected != nil {
		c.Detail = listenersDetail(form.Unredirected, s)
		c.Mend = "load the kernel modules nf_tables and nft_redir, or allow them in this container, and runs reach every port and can bind every port"
	}
	if !form.IPv6 {
		// Names are reached all the same: it is airlock that dials, with what the host has.
		c.Detail += "; connections that a run opens to IPv6 addresses are refused, since this kernel has no IPv6, or no NAT for it"
	}
	if s.Network.Upstream != "" || s.Network.Mode == "deny" {
		if strings.HasPrefix(s.Network.Upstream, "name:") {
			c.Detail += "; network.upstream is given names, so that it alone knows what addresses are reached"
		}
		return c
	}
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"} {
		if lookup(environ, name) != "" {
			c.Detail += "; " + name + " is set on this host, and not used: network.upstream would say so"
			break
		}
	}
	return c
}

// refuse notes that no run is possible, for what err says of the thing that is called name.
func (d *diagnosis) refuse(name, promise string, err error) {
	cause := strings.ReplaceAll(err.Error(), "\n", "; ")
	detail := strings.TrimPrefix(strings.TrimPrefix(cause, "the "+name+" "), name+": ")
	c := check{Name: name, Promise: promise, Detail: detail, Mend: strings.Join(hintsOf(err), "; ")}
	d.Checks = append(d.Checks, c)
	if d.Possible {
		d.Possible, d.Cause, d.Mend = false, cause, c.Mend
	}
}

// checkState says so if what is kept in the state directory can't be executed.
func checkState(state string) (check, bool) {
	if !noExec(state) {
		return check{}, false
	}
	return check{
		Name: "state directory", Promise: "environments can be used, and installers are told about",
		Detail: state + " is on a filesystem that is mounted noexec: runs can't execute the programs of environments, nor load their compiled modules",
		Mend:   "set XDG_STATE_HOME to a directory on a filesystem without noexec, or mount that one without (mount -o remount,exec)",
	}, true
}

// listenersDetail says how runs reach hosts where nothing can be redirected, and what they can't do then.
func listenersDetail(why error, s settings) string {
	text := fmt.Sprintf("names are redirected, and connections are taken by listeners, since nf_tables can't be had (%v): "+
		"programs that use no proxy reach the ports that network.allow names", why)
	ports := []string{"53"}
	if policy, err := proxy.NewPolicy(s.Network); err == nil {
		for _, port := range policy.AllPorts() {
			if port != 53 {
				ports = append(ports, strconv.Itoa(port))
			}
		}
	}
	if s.Network.Mode == "deny" {
		return text // no run has any of them
	}
	return text + "; a run can't bind these on the wildcard address (0.0.0.0) once it has looked up such a host, only on 127.0.0.1: " + strings.Join(ports, ", ")
}

// diagnoseTime is the longest that looking at a host may take, and probeTime the longest of trying one backend.
const (
	diagnoseTime = 30 * time.Second
	probeTime    = 10 * time.Second
)

// diagnose looks at the host and tries the backends that the settings allow.
func diagnose(ctx context.Context, s settings, environ []string) diagnosis {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	d := diagnosis{Backend: s.Sandbox.Backend, Checks: []check{}, Held: map[string]string{}, Notes: s.notes()}
	for _, c := range sandbox.Checks(ctx) {
		d.Checks = append(d.Checks, check(c))
	}
	var names []string
	if s.Sandbox.Backend != "auto" {
		names = []string{s.Sandbox.Backend}
	}
	var err error
	var choice sandbox.Choice
	if !s.Unconfined() {
		choice = sandbox.Choose(ctx, probeTime, names...)
		d.Why = choice.Why
		for _, r := range choice.Refused {
			d.Refused = append(d.Refused, refused{r.Name, r.Err.Error()})
		}
		err = choice.Err()
	}
	var backend sandbox.Backend
	if err == nil {
		backend, err = s.backend(func() (sandbox.Backend, error) { return sandbox.Open(choice.Name) })
	}
	if err == nil {
		d.Backend, d.Held = backend.Name(), backend.Held()
		if b, ok := backend.(interface {
			ProbeEgress(context.Context) (sandbox.EgressForm, error)
		}); ok {
			form, probeErr := b.ProbeEgress(ctx)
			c := checkEgress(form, probeErr, s, environ)
			d.Checks = append(d.Checks, c)
			if !c.OK && s.Network.Mode != "deny" {
				err = errors.New(c.Detail)
			}
		}
		err = errors.Join(err, backend.Close())
	}
	if err == nil && s.Limits.Enforce == "strict" {
		err = refusedByStrict(d.Held, s.Limits)
	}
	d.Root = os.Geteuid() == 0
	if err == nil && !s.Unconfined() && s.Limits.Processes > 0 && !sandbox.IsHeld(d.Held["processes"]) {
		d.RootRefused = d.Root
		if !d.Root {
			// There is one user whom RLIMIT_NPROC does not bind, and in a user namespace it can have any number.
			err = &fault{
				Key:  "limits.processes",
				Msg:  "is held by nothing here: this user is root outside of this user namespace, or whether RLIMIT_NPROC binds it could not be tried",
				Hint: "run airlock as another user, or give it a cgroup",
			}
		}
	}
	if err != nil {
		d.Cause, d.Mend = err.Error(), strings.Join(hintsOf(err), "; ")
	}
	d.Possible = err == nil
	d.Through = s.Workspace.Mode == "direct" && !s.Unconfined()
	return d
}

// refusedByStrict says why limits.enforce = "strict" refuses every run on a host that holds these limits; nil if
// it doesn't.
func refusedByStrict(held map[string]string, l tools.Limits) error {
	for _, limit := range []struct {
		name string
		set  bool
	}{{"memory", l.Memory > 0}, {"processes", l.Processes > 0}, {"cpu", l.CPU > 0}} {
		if limit.set && !sandbox.IsHeld(held[limit.name]) {
			return &fault{
				Key:  "limits.enforce",
				Msg:  `is "strict", and nothing on this host holds limits.` + limit.name,
				Hint: `do what the checks say, or set limits.enforce = "best" to run without what can't be held`,
			}
		}
	}
	return nil
}

// print writes it for a person, in lines that a terminal of so many columns holds.
func (d diagnosis) print(w io.Writer, p paint, columns int) error {
	var b strings.Builder
	for _, c := range d.Checks {
		mark := p.in(green, "ok  ")
		if !c.OK {
			mark = p.in(red, "FAIL")
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", mark, c.Name, c.Detail)
		if !c.OK && c.Promise != "" {
			fmt.Fprintf(&b, "      for: %s\n", c.Promise)
		}
		if c.Mend != "" {
			fmt.Fprintf(&b, "      mend: %s\n", strings.ReplaceAll(c.Mend, "\n", "\n            "))
		}
	}
	if len(d.Held) > 0 {
		b.WriteString("\nLimits:\n")
	}
	for _, limit := range slices.Sorted(maps.Keys(d.Held)) {
		switch by := d.Held[limit]; {
		case limit == "disk" && by == sandbox.Watched:
			b.WriteString("      the limit on disk is watched: what a run writes to the workspace is measured every 50 ms, together with its /tmp, /dev/shm and home directory, and a run beyond the limit is ended and never lands\n")
		case by == sandbox.Watched:
			fmt.Fprintf(&b, "      the limit on %s is watched, not held: a run is looked at every 50 ms, ended beyond it, and never lands; what it takes in between it has\n", limit)
		case by == sandbox.Affinity:
			fmt.Fprintf(&b, "      the limit on %s is set by affinity, which a run can undo: nothing on this host holds it\n", limit)
		case by != "":
			fmt.Fprintf(&b, "      the limit on %s is held by: %s\n", limit, by)
		default:
			fmt.Fprintf(&b, "      the limit on %s is held by nothing on this host\n", limit)
		}
	}
	if d.Root && d.Backend != "direct" {
		b.WriteString("\nAs root: runs in a workspace of another user's have that user's identity, and no cache that lasts and no environments, since the user may not go into root's state directory. Run airlock as that user to have both.\n")
	}
	if d.RootRefused && d.Possible {
		b.WriteString("Runs in a workspace of root's own are refused, since nothing here holds limits.processes, and root of the host is not bound by the other means. Run airlock as another user, or give it a cgroup.\n")
	}
	if len(d.Notes) > 0 {
		b.WriteString("\nConfiguration:\n")
	}
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "      %s\n      mend: %s\n", n.Text, n.Mend)
	}
	if len(d.Waiting) > 0 {
		b.WriteString("\nWaiting for review:\n")
	}
	for _, waiting := range d.Waiting {
		waiting.print(&b)
	}
	if d.NoWorkspace != "" {
		fmt.Fprintf(&b, "\nNo workspace was looked at, with what its project's policy says: %s. Name one with --workspace DIR.\n", d.NoWorkspace)
	}
	switch {
	case !d.Possible:
		fmt.Fprintf(&b, "\n%s %s\n", p.in(red, "No run is possible:"), d.Cause)
		if d.Mend != "" {
			fmt.Fprintf(&b, "mend: %s\n", d.Mend)
		}
	case d.Backend == "direct":
		b.WriteString("\nRuns are possible, and NOT sandboxed: sandbox.backend is \"direct\".\n")
	default:
		fmt.Fprintf(&b, "\n%s %s\n", p.in(green, "Runs are possible:"), d.isolation())
		for _, r := range d.Refused {
			fmt.Fprintf(&b, "%s does not work here: %s\n", r.Name, strings.ReplaceAll(r.Cause, "\n", "; "))
		}
		if d.Through {
			b.WriteString("They write to the workspace itself, without a transaction, and nothing bounds how much: workspace.mode is \"direct\".\n")
		}
	}
	_, err := io.WriteString(w, fold(b.String(), columns, len("FAIL  ")))
	return err
}

// isolation says what isolates runs, and why that.
func (d diagnosis) isolation() string {
	text := fmt.Sprintf("they are isolated by the backend %s", d.Backend)
	if d.Why != "" {
		text += ": " + d.Why
	}
	if d.Backend == "bwrap" {
		text += "; runs can do, and can't, what they can with native"
	}
	return text + "."
}

func (r waitingRuns) print(b *strings.Builder) {
	if r.Fault != "" {
		fmt.Fprintf(b, "      what waits for review can't be told: %s\n", r.Fault)
		return
	}
	noun, hold := "runs wait", "hold"
	if len(r.Runs) == 1 {
		noun, hold = "run waits", "holds"
	}
	fmt.Fprintf(b, "      %d %s for review in %s, and %s %s: %s\n", len(r.Runs), noun, r.Workspace, hold, units.Size(r.Bytes).Rounded(), strings.Join(r.Runs, ", "))
	if r.Gone {
		fmt.Fprintf(b, "      mend: the workspace is not there any more; put it back to land them, or remove %s\n", r.Layers)
	}
}

func (d diagnosis) printJSON(w io.Writer) error {
	return printJSON(w, d)
}
