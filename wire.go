package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"airlock/envs"
	"airlock/overlay"
	"airlock/sandbox"
	"airlock/tools"
)

// openRunner builds what does runs in an opened workspace: a backend, the transactions, and what runs
// see of the host. It fails where no run could be right, with the cause and the mend.
func openRunner(ctx context.Context, p places, o opened, environ []string) (*tools.WorkspaceRunner, error) {
	if err := p.makeState(); err != nil {
		return nil, errors.Join(err, o.ahead.close())
	}
	if err := o.landable(); err != nil {
		return nil, errors.Join(err, o.ahead.close())
	}
	uid, gid, err := runAs(o.dir)
	if err != nil {
		return nil, errors.Join(err, o.ahead.close())
	}
	// It takes as long to have a backend as to find out what runs see.
	ahead, err := o.takeAhead(uid, gid)
	if err != nil {
		return nil, err
	}
	system, view, err := o.look(p, environ, uid, gid)
	backend, backendErr := ahead.wait()
	if err != nil {
		if backendErr == nil {
			err = errors.Join(err, backend.Close())
		}
		return nil, err
	}
	if backendErr != nil {
		return nil, backendErr
	}
	options := tools.RunnerOptions{
		Backend:  backend,
		View:     view,
		Identity: tools.Identity{UID: uid, GID: gid, Home: system.Account.Home},
	}
	failed := func(err error) (*tools.WorkspaceRunner, error) {
		if options.Cache != nil {
			err = errors.Join(err, options.Cache.Close())
		}
		return nil, errors.Join(err, options.Backend.Close())
	}
	var notes []string
	for _, f := range o.settings.idle() {
		notes = append(notes, "Tell the user: "+forModel(f).Error()+".")
	}
	if options.Cache, err = o.cache(p, &view, system.Account); err != nil {
		notes = append(notes, "Runs have no cache that lasts here: "+err.Error()+".")
	}
	options.View = view
	if options.Packages, err = o.packageOptions(p, &system, view, uid); err != nil {
		return failed(err)
	}
	if options.Packages.Off == "" && noExec(p.state) {
		notes = append(notes, "Programs and compiled modules of environments can't be used here: the state directory is on a filesystem that is mounted noexec. The user can set XDG_STATE_HOME.")
	}
	options.Policy, options.Tools = o.settings.describe(), o.settings.Tools
	options.Policy.Cache = options.Cache != nil
	options.Network = o.network.current
	options.Direct = func(ctx context.Context, run, what string) (func() error, error) {
		return overlay.NoteDirect(ctx, o.dir, p.state, run, what)
	}
	options.Policy.Notes = append(unheld(options.Backend, o.settings.Limits), notes...)
	if !o.settings.Unconfined() {
		if options.Layers, err = o.transactions(p, o.settings.Workspace.Mode, environ); err != nil {
			return failed(err)
		}
		if options.Cache != nil {
			if err := keepWaitingCache(ctx, options.Cache, options.Layers); err != nil {
				options.Policy.Notes = append(options.Policy.Notes, "Tell the user: what runs left for the cache that waited for review can't be removed: "+err.Error()+".")
			}
		}
		options.Layers.AllowGit(o.allowGit)
		for _, left := range leftOfLandings(options.Layers) {
			options.Policy.Notes = append(options.Policy.Notes, "Tell the user: "+left+".")
		}
	}
	return tools.NewRunner(options), nil
}

// landable refuses a workspace of another user's in which nothing could land: a run would be told only when it has ended. One's
// own is made writable by a landing.
func (o opened) landable() error {
	if o.settings.Unconfined() || o.settings.Workspace.Mode != "overlay" || mayWrite(o.dir) {
		return nil
	}
	info, err := os.Stat(o.dir)
	if err != nil {
		return err
	}
	owner, _ := ownerOf(info)
	if owner == os.Geteuid() {
		return nil
	}
	return &fault{
		Where: "workspace", Key: tomlText(o.dir),
		Msg:  "is " + userName(owner) + "'s, and you may not write in it, so that nothing that a run changes could land",
		Hint: `have it made yours (chown), or set workspace.mode = "readonly" for runs that change nothing`,
	}
}

// takeAhead takes the backend that was begun for this workspace, if what it depends on is still so, or begins one.
func (o opened) takeAhead(uid, gid int) (*backendAhead, error) {
	if o.ahead != nil && o.ahead.of == o.settings.backendKey(uid, gid) {
		return o.ahead, nil
	}
	if err := o.ahead.close(); err != nil {
		return nil, err
	}
	return o.settings.backendAhead(o.auto, uid, gid), nil
}

// look finds out what runs see of the host.
func (o opened) look(p places, environ []string, uid, gid int) (sandbox.System, tools.View, error) {
	system, err := sandbox.HostSystem(environ, uid, gid, o.dir)
	if err != nil {
		return system, tools.View{}, err
	}
	view, err := o.view(p, &system, environ)
	return system, view, err
}

// transactions opens the transactions of the workspace, as the settings have them but for the mode.
func (o opened) transactions(p places, mode string, environ []string) (*overlay.Workspace, error) {
	hidden, err := overlay.NewHidden(o.settings.Sandbox.Hide)
	if err != nil {
		return nil, err
	}
	config := o.settings.Workspace
	config.Mode = mode
	w, err := overlay.Open(o.dir, p.state, config)
	if err != nil {
		return nil, err
	}
	w.SetGitUser(gitUser(p, o.dir, environ))
	if err := w.Hide(hidden); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// leftOfLandings says, a sentence each, where the remains of landings are that could not be taken back.
func leftOfLandings(w *overlay.Workspace) []string {
	var left []string
	for _, dir := range w.Interrupted() {
		left = append(left, "what is left of a landing that could not be taken back is in "+overlay.Quote(dir))
	}
	return left
}

// unheld says which of the limits no kernel mechanism on this host holds, a sentence for each kind. That
// limits.disk is watched is so on every host, and needs no words.
func unheld(backend sandbox.Backend, l tools.Limits) []string {
	if backend.Unconfined() {
		return []string{"None of these limits but the time and the output is held: runs are not sandboxed."}
	}
	held := backend.Held()
	var names, notes []string
	if held["memory"] == sandbox.Watched {
		notes = append(notes, "Nothing on this host holds limits.memory: it is watched, and a run beyond it is ended a little later.")
	}
	for name, limited := range map[string]bool{"processes": l.Processes > 0, "memory": l.Memory > 0, "files": l.Files > 0, "cpu": l.CPU > 0} {
		if limited && (held[name] == "" || held[name] == sandbox.Affinity) {
			names = append(names, "limits."+name)
		}
	}
	if len(names) == 0 {
		return notes
	}
	slices.Sort(names)
	return append(notes, "Nothing on this host holds "+strings.Join(names, " and ")+"; airlock doctor tells what would.")
}

// describe is what the tools' descriptions say of the settings.
func (s settings) describe() tools.Policy {
	return tools.Policy{
		Direct:     s.Unconfined(),
		Through:    s.Workspace.Mode == "direct" && !s.Unconfined(),
		ReadOnly:   s.Workspace.Mode == "readonly",
		Hides:      len(s.Sandbox.Hide) > 0,
		Cache:      s.Sandbox.Cache != "" && !s.Unconfined(),
		LandOn:     s.Workspace.LandOn,
		OnConflict: s.Workspace.OnConflict,
		Packages:   !s.Unconfined() && s.Packages.Approve != "never" && !slices.Contains(s.Tools.Disable, "package_install"),
		Network:    s.Network.Mode,
		Allow:      s.Network.Allow,
		Order:      s.Workspace.Order,
		Limits:     s.Limits,
	}
}

// read shows what sandbox.read names.
func (s settings) read() (mounts []sandbox.Mount, err error) {
	for _, path := range s.Sandbox.Read {
		shown, err := sandbox.Show(path)
		if err != nil {
			err = s.attribute(fmt.Errorf("sandbox.read: %s can't be shown: %w", tomlText(path), cause(err)))
			if f := new(fault); errors.As(err, &f) {
				f.Hint = "make it, or take it out of sandbox.read"
			}
			return nil, err
		}
		mounts = append(mounts, shown...)
	}
	return mounts, nil
}

// view is what every run of the workspace sees of the host, and its environment.
func (o opened) view(p places, system *sandbox.System, environ []string) (tools.View, error) {
	read, err := o.settings.read()
	if err != nil {
		return tools.View{}, err
	}
	mounts := slices.Concat(system.Mounts, read)
	// The links that lead to the workspace are there too, so that a path that a client knows it by works.
	_, links, err := sandbox.FollowLinks(o.alias)
	if err != nil {
		return tools.View{}, err
	}
	mounts = append(mounts, links...)
	shell := "/bin/sh"
	if system.Visible("/bin/bash") {
		shell = "/bin/bash"
	}
	hidden, err := overlay.NewHidden(o.settings.Sandbox.Hide)
	if err != nil {
		return tools.View{}, err
	}
	account := system.Account
	env := []string{
		"PATH=" + strings.Join(system.Path, ":"),
		"HOME=" + account.Home,
		"USER=" + account.Name,
		"LOGNAME=" + account.Name,
		"SHELL=" + shell,
		"TMPDIR=/tmp",
		"LANG=C.UTF-8", // the one that every host has; sandbox.pass_env and sandbox.env go before it
	}
	env = append(env, withoutTerminal...)
	if o.settings.Unconfined() {
		env[0] = "PATH=" + lookup(environ, "PATH")
	} else {
		file, variable := gitForRuns(p, o.dir, environ)
		mounts, env = append(mounts, file), append(env, variable)
	}
	env = append(env, system.Env...)
	return tools.View{
		Workspace: o.dir,
		Alias:     o.alias,
		Mounts:    mounts,
		Env:       lastOfEach(append(env, o.settings.Sandbox.Environ(environ)...)),
		Shell:     shell,
		Hidden:    hidden,
		Python: envs.FindOptions{
			Config:       o.settings.Python.Interpreter,
			Workspace:    o.dir,
			Path:         lookup(environ, "PATH"),
			PyenvVersion: lookup(environ, "PYENV_VERSION"),
			Visible: func(path string) bool {
				if rel, err := filepath.Rel(o.dir, path); err == nil && filepath.IsLocal(rel) {
					return !hidden.Hides(filepath.ToSlash(rel), false)
				}
				return o.settings.Unconfined() || system.Visible(path)
			},
		},
	}, nil
}

// lastOfEach drops the variables that a later entry of the same name sets again.
func lastOfEach(env []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, entry := range slices.Backward(env) {
		if name, _, _ := strings.Cut(entry, "="); !seen[name] {
			seen[name] = true
			kept = append(kept, entry)
		}
	}
	slices.Reverse(kept)
	return kept
}

// runAs returns the ids that runs in a workspace have: the server's own, but never root's where root
// serves a workspace that somebody else owns.
func runAs(dir string) (uid, gid int, err error) {
	uid, gid = os.Geteuid(), os.Getegid()
	if uid != 0 {
		return uid, gid, nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return 0, 0, err
	}
	uid, gid = ownerOf(info)
	return uid, gid, nil
}

// forModel puts an error and its ways out on one line, since a model that is refused a run reads only
// that. A log and a note have no more room.
func forModel(err error) error {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	for _, hint := range hintsOf(err) {
		text += "; hint: " + strings.ReplaceAll(hint, "\n", " ")
	}
	return errors.New(text)
}
