package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"airlock/envs"
	"airlock/proxy"
	"airlock/sandbox"
)

// PackageOptions is what the package tools of a workspace need.
type PackageOptions struct {
	// Begin begins the conversation's environments, with an installer that is sandboxed; nil for none.
	Begin func(ctx context.Context, in envs.Installer) (*envs.Conversation, error)
	// System are the mounts that show an installer the system's programs.
	System []sandbox.Mount
	// Gateway is the way of an installer to the package index.
	Gateway func() (*proxy.Gateway, error)
	// Stubs is a directory of stand-ins for installers, which runs see on their PATH; "" for none.
	Stubs string
	// Off says why there are no environments, where there are none.
	Off string
}

// packages begins the environments of a conversation when they are first needed.
type packages struct {
	options PackageOptions

	mu           sync.Mutex
	conversation *envs.Conversation
}

func (p *packages) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conversation == nil {
		return nil
	}
	return p.conversation.Close()
}

// Environments implements [Runner].
func (w *WorkspaceRunner) Environments(ctx context.Context) (*envs.Conversation, error) {
	p := &w.packages
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conversation != nil {
		return p.conversation, nil
	}
	if p.options.Begin == nil {
		if p.options.Off != "" {
			return nil, errors.New(p.options.Off)
		}
		return nil, errors.New("there are no environments in this workspace")
	}
	c, err := p.options.Begin(ctx, &installer{
		backend: w.backend, system: p.options.System, limits: w.policy.Limits, identity: w.identity, gateway: p.options.Gateway,
	})
	if err != nil {
		return nil, err
	}
	p.conversation = c
	return c, nil
}

// stubsDir is where runs see the stand-ins for installers.
const stubsDir = "/run/airlock/bin"

// surroundings are what a run has of environments: the tree that it sees at /env, and stand-ins for
// installers.
type surroundings struct {
	tree  *envs.Tree // nil for none
	ofR   *envs.Tree // the library of R packages; nil for none
	stubs string
}

func (s surroundings) release() {
	s.tree.Release()
	s.ofR.Release()
}

// surround gives a run its environment: the named one; else that which the conversation chose; else, for
// run_python, the project's .venv; else the default one, if there is anything in it. The note says why an
// environment that was not asked for is not there.
func (w *WorkspaceRunner) surround(ctx context.Context, r Request) (s surroundings, note string, err error) {
	if w.packages.options.Begin == nil {
		if r.Environment != "" {
			_, err := w.Environments(ctx)
			return s, "", fmt.Errorf("environment: %w", err)
		}
		return s, "", nil
	}
	s.stubs = w.packages.options.Stubs
	c, err := w.Environments(ctx)
	if err != nil {
		return s, "", err
	}
	name, chosen := c.Current()
	if r.Environment != "" {
		name, chosen = r.Environment, true
	}
	if !chosen && r.Tool == "run_python" && w.hasVenv() {
		return s, "", nil
	}
	var errR error
	s.tree, err = c.Mount(ctx, name)
	s.ofR, errR = c.MountR(ctx, name)
	err = errors.Join(err, errR)
	switch {
	case err != nil && chosen:
		s.release()
		return surroundings{}, "", fmt.Errorf("environment: %w", err)
	case err != nil:
		return s, fmt.Sprintf("the environment %q is not used: %v", name, err), nil
	case s.tree == nil && s.ofR == nil && r.Environment != "" && r.Environment != envs.DefaultEnvironment:
		return s, "", fmt.Errorf("environment: there is nothing in an environment %q; package_install installs into it, python_env lists those that there are", r.Environment)
	}
	return s, "", nil
}

// hasVenv reports whether the project has a .venv that runs can use.
func (w *WorkspaceRunner) hasVenv() bool {
	interpreter, err := envs.FindPython(w.view.Python)
	return err == nil && interpreter.Source == envs.SourceProject
}

// mounts shows the tree and the stand-ins.
func (s surroundings) mounts() ([]sandbox.Mount, error) {
	var mounts []sandbox.Mount
	if s.stubs != "" {
		mounts = append(mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: s.stubs, Target: stubsDir})
	}
	for _, tree := range []*envs.Tree{s.tree, s.ofR} {
		if tree == nil {
			continue
		}
		mounts = append(mounts, sandbox.Mount{Kind: sandbox.MountBind, Source: tree.Root, Target: tree.MountPoint()})
		for _, path := range tree.Show {
			shown, err := sandbox.Show(path)
			if err != nil {
				return nil, err
			}
			mounts = append(mounts, shown...)
		}
	}
	return mounts, nil
}

// onPath puts the environment's programs first on PATH, and the stand-ins behind them, and names the library of R
// packages. Nothing else is set: a variable that leads Python to a place would lead an environment that the run
// makes for itself there too.
func (s surroundings) onPath(env []string) []string {
	if s.ofR != nil {
		env = append(slices.Clone(env), "R_LIBS_USER="+s.ofR.MountPoint())
	}
	first := ""
	if s.tree != nil {
		first += s.tree.MountPoint() + "/bin:"
	}
	if s.stubs != "" {
		first += stubsDir + ":"
	}
	if first == "" {
		return env
	}
	changed := make([]string, len(env))
	for i, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			entry = "PATH=" + first + path
		}
		changed[i] = entry
	}
	return changed
}

// checkEnvironment reports a name that no environment can have.
func checkEnvironment(name string) error {
	if name == "" {
		return nil
	}
	if err := envs.CheckName(name); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	return nil
}

// permitProgram refuses programs that would install packages past the tools for that. It is a matter of the
// contract, not of security: what such a program could reach is the run's network, and what it could change
// is the run's own.
func (w *WorkspaceRunner) permitProgram(r Request) error {
	if w.packages.options.Begin == nil || r.Tool == "" {
		return nil
	}
	found := ""
	if r.Command != "" {
		found = envs.InstallerInShell(r.Command)
	} else if r.Code != "" {
		found = envs.InstallerInPython(r.Code)
	}
	if found == "" {
		return nil
	}
	return errors.New(envs.UseInstead(found))
}
