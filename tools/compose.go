package tools

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"airlock/envs"
	"airlock/overlay"
	"airlock/sandbox"
)

// View is what every run of a workspace sees of the host, and the environment it starts from.
type View struct {
	// Workspace is the real path of the workspace, where runs see it too.
	Workspace string
	// Alias is another path that leads to it through links that Mounts make again, or the same.
	Alias string
	// Mounts are the system, toolchains and what sandbox.read names; the workspace is not among them.
	Mounts []sandbox.Mount
	// Env is the environment of every run, as KEY=VALUE.
	Env []string
	// Shell is the shell of run_shell: an absolute path that a run sees.
	Shell string
	// Hidden is what runs do not see of the workspace.
	Hidden overlay.Hidden
	// Python says where the interpreter of run_python is looked for. It is looked for at each call,
	// since a run may just have made a .venv.
	Python envs.FindOptions
}

// scriptFile is where a program is seen that is too long for an argument.
const scriptFile = "/run/airlock/script"

// maxArgument is the longest program that is passed as an argument. Linux takes 128 KiB
// (MAX_ARG_STRLEN) for one.
const maxArgument = 100 << 10

// roomForOwn is how many mounts of its own, beside the view's and those that it is given, a run seldom exceeds: layers, what is
// protected in them, an environment.
const roomForOwn = 32

// compose makes the Spec of a run. There are no layers if the run writes to the workspace itself; more is what it sees
// besides. The error is for the model, and so is the note, which may be "".
func (w *WorkspaceRunner) compose(id string, r Request, layers []overlay.Layer, env surroundings, more []sandbox.Mount) (spec sandbox.Spec, note string, err error) {
	dir, err := w.view.inside("cwd", r.Cwd, true)
	if err != nil {
		return sandbox.Spec{}, "", err
	}
	spec = sandbox.Spec{
		ID:      "run-" + id,
		Dir:     dir,
		Home:    w.identity.Home,
		UID:     w.identity.UID,
		GID:     w.identity.GID,
		Mounts:  append(make([]sandbox.Mount, 0, len(w.view.Mounts)+len(more)+roomForOwn), w.view.Mounts...),
		Limits:  w.policy.Limits.sandbox(),
		Network: sandbox.NetworkNone,
	}
	if w.backend.Unconfined() {
		spec.Network = sandbox.NetworkHost
	}
	spec.Mounts = append(spec.Mounts, more...)
	for _, l := range layers {
		spec.Mounts = append(spec.Mounts, linksTo(l.Via, layers)...)
		spec.Mounts = append(spec.Mounts, mountOf(l))
	}
	variables := env.onPath(w.view.Env)
	mounts, err := env.mounts()
	if err != nil {
		return sandbox.Spec{}, "", err
	}
	spec.Mounts = append(spec.Mounts, mounts...)
	if r.Tool == "run_python" {
		mounts, argv, unused, err := w.python(r, env)
		if err != nil {
			return sandbox.Spec{}, "", err
		}
		note = unused
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Argv = argv
		// Without this a program that is ended loses what it printed, and its standard output and
		// standard error do not stand in the order in which they were written.
		variables = append(slices.Clone(variables), "PYTHONUNBUFFERED=1")
	} else {
		mounts, command := w.script(r.Command, ". "+scriptFile)
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Argv = []string{w.view.Shell, "-c", command}
	}
	spec.Env = withEnv(variables, r.Env)
	return spec, note, nil
}

// linksTo are the links by which a path leads to where it leads on the host. The ones in a layer are there already.
func linksTo(path string, layers []overlay.Layer) []sandbox.Mount {
	if path == "" {
		return nil
	}
	_, links, err := sandbox.FollowLinks(path)
	if err != nil {
		return nil // gone since; the run then sees what the host does
	}
	return slices.DeleteFunc(links, func(link sandbox.Mount) bool {
		return slices.ContainsFunc(layers, func(l overlay.Layer) bool { return liesIn(link.Target, l.Lower) }) ||
			liesIn(link.Target, "/proc") || liesIn(link.Target, "/dev")
	})
}

// liesIn reports whether path is dir or lies in it. Both are absolute and clean.
func liesIn(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// mountOf is a layer as the sandbox takes it.
func mountOf(l overlay.Layer) sandbox.Mount {
	switch {
	case l.Writable:
		return sandbox.Mount{Kind: sandbox.MountBind, Source: l.Lower, Target: l.Lower, Writable: true}
	case l.Masked:
		return sandbox.Mount{Kind: sandbox.MountMask, Target: l.Lower}
	case l.ReadOnly, l.Upper == "" && l.Copy == "" && l.Mask == "":
		return sandbox.Mount{Kind: sandbox.MountBind, Source: l.Lower, Target: l.Lower}
	case l.Copy != "":
		return sandbox.Mount{Kind: sandbox.MountBind, Source: l.Copy, Target: l.Lower, Writable: true}
	}
	return sandbox.Mount{Kind: sandbox.MountOverlay, Source: l.Lower, Target: l.Lower, Upper: l.Upper, Work: l.Work, Mask: l.Mask}
}

// inside gives the absolute path of an argument that names something in the workspace. Links in it are
// followed in the sandbox, where they lead to nothing that the run does not see anyway.
func (v View) inside(argument, p string, isDir bool) (string, error) {
	path, err := v.absolute(argument, p)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(v.Workspace, path); err == nil && rel != "." && v.Hidden.Hides(filepath.ToSlash(rel), isDir) {
		return "", fmt.Errorf("%s: %q is hidden from runs (sandbox.hide)", argument, p)
	}
	return path, nil
}

func (v View) absolute(argument, p string) (string, error) {
	if !filepath.IsAbs(p) {
		return filepath.Join(v.Workspace, p), nil
	}
	for _, root := range []string{v.Workspace, v.Alias} {
		rest, err := filepath.Rel(root, p)
		if root != "" && err == nil && filepath.IsLocal(rest) {
			return filepath.Join(v.Workspace, rest), nil
		}
	}
	return "", fmt.Errorf("%s: %q is outside of the workspace; takes a path inside it, %s", argument, p, v.Workspace)
}

// python gives what a run_python call executes, and a note where that is not the project's .venv although
// there is one: what it holds cannot be imported then.
func (w *WorkspaceRunner) python(r Request, env surroundings) (mounts []sandbox.Mount, argv []string, note string, err error) {
	if env.tree != nil {
		argv = []string{env.tree.Python()}
	} else if mounts, argv, note, err = w.hostPython(); err != nil {
		return nil, nil, "", err
	}
	if r.File != "" {
		file, err := w.view.inside("file", r.File, false)
		if err != nil {
			return nil, nil, "", err
		}
		argv = append(argv, file)
	} else {
		files, code := w.script(r.Code, "exec(compile(open('"+scriptFile+"', encoding='utf-8').read(), '"+scriptFile+"', 'exec'))")
		mounts = append(mounts, files...)
		argv = append(argv, "-c", code)
	}
	return mounts, append(argv, r.Args...), note, nil
}

// hostPython gives the interpreter of a run without an environment of airlock's.
func (w *WorkspaceRunner) hostPython() (mounts []sandbox.Mount, argv []string, note string, err error) {
	interpreter, err := envs.FindPython(w.view.Python)
	if err != nil {
		var none *envs.NotFoundError
		if errors.As(err, &none) && none.Hint != "" {
			err = fmt.Errorf("%w\nhint: %s", err, none.Hint)
		}
		return nil, nil, "", err
	}
	if unused := interpreter.Unused; unused != nil {
		note = fmt.Sprintf("the project's .venv is not used: %s: %v", unused.Path, unused.Why)
	}
	for _, prefix := range interpreter.Prefix {
		bound, err := sandbox.Show(prefix)
		if err != nil {
			return nil, nil, "", err
		}
		mounts = append(mounts, bound...)
	}
	return mounts, []string{interpreter.Path}, note, nil
}

// script gives a program as the argument of "-c": itself, or, if it is too long for that, read with
// the given words from a file that the run sees.
func (w *WorkspaceRunner) script(program, read string) ([]sandbox.Mount, string) {
	if len(program) <= maxArgument || w.backend.Unconfined() {
		return nil, program
	}
	file := sandbox.Mount{Kind: sandbox.MountFile, Target: scriptFile, Content: []byte(program)}
	return []sandbox.Mount{file}, read
}

// withEnv sets variables over those of env, in a fixed order.
func withEnv(env []string, set map[string]string) []string {
	if len(set) == 0 {
		return env
	}
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, replaced := set[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		env = append(env, name+"="+set[name])
	}
	return env
}

// sandbox gives the limits as a backend takes them.
func (l Limits) sandbox() sandbox.Limits {
	return sandbox.Limits{
		Processes: l.Processes,
		Memory:    int64(l.Memory),
		Disk:      int64(l.Disk),
		Files:     l.Files,
		CPU:       l.CPU,
		Strict:    l.Enforce == "strict",
	}
}
