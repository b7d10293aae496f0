package envs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/untrusted"
)

// Interpreter is a Python that runs can execute.
type Interpreter struct {
	// Path is what a run executes. In a virtual environment it is the environment's own python, a
	// link, which is how an interpreter knows that it is in one.
	Path string
	// Prefix lists what must be bound read-only at its own place for Path to work and is not already
	// seen by a run; mostly nothing. Each is a whole installation of Python, or a single program.
	Prefix []string
	// Source says which rule found it: the name of one of the Source constants.
	Source Source
	// Unused is the project's .venv where it has one that a run cannot use, so that another was taken;
	// nil otherwise.
	Unused *Looked
}

// Source is the rule by which an interpreter was found.
type Source string

// The sources, in the order in which they are tried. The first is tried alone if it is configured.
const (
	SourceConfig  Source = "python.interpreter"
	SourceProject Source = ".venv"
	SourcePath    Source = "PATH"
	SourceSystem  Source = "system"
)

// FindOptions says where to look.
type FindOptions struct {
	// Config is python.interpreter; "" looks at all the others.
	Config string
	// Workspace is the real path of the workspace; "" if there is none.
	Workspace string
	// Path is the list of directories that the user's own python3 is found in. Entries that are not
	// absolute are passed over.
	Path string
	// PyenvVersion is the value of PYENV_VERSION, which goes before what files say.
	PyenvVersion string
	// System lists the interpreters tried last; nil is /usr/bin/python3, /usr/local/bin/python3.
	System []string
	// Visible reports whether a run sees what is at an absolute path, at that same path and with its
	// own identity. nil sees everything.
	Visible func(path string) bool
}

// NotFoundError says that there is no Python for runs. It is what [FindPython] returns.
type NotFoundError struct {
	Looked []Looked // in the order tried
	Hint   string   // what the person can do about it
}

// Looked is one place that was tried, and why it did not serve.
type Looked struct {
	Path string
	Why  error
}

// Error gives every place with its reason on one line; the hint stands apart in Hint.
func (e *NotFoundError) Error() string {
	var b strings.Builder
	b.WriteString("no Python that a run can execute")
	for i, l := range e.Looked {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s: %v", sep, l.Path, l.Why)
	}
	return b.String()
}

var (
	errNoProgram  = errors.New("leads to no program that runs see")
	errNotSeen    = errors.New("runs do not see it")
	errNotRegular = errors.New("is not a program")
	errNotExec    = errors.New("may not be executed")
)

// FindPython returns the first interpreter that a run can really execute: python.interpreter if it is
// set and no other; else the project's .venv, each python3 on Path, and the system's. It executes
// nothing. The error is a [*NotFoundError].
func FindPython(opts FindOptions) (Interpreter, error) {
	if opts.Visible == nil {
		opts.Visible = func(string) bool { return true }
	}
	if opts.System == nil {
		opts.System = []string{"/usr/bin/python3", "/usr/local/bin/python3"}
	}
	f := finder{FindOptions: opts}
	if opts.Config != "" {
		if found, ok := f.configured(); ok {
			return found, nil
		}
		return Interpreter{}, &NotFoundError{f.looked, `set python.interpreter to an interpreter that exists, or to "" to find one`}
	}
	if found, ok := f.project(); ok {
		return found, nil
	}
	var unused *Looked
	if len(f.looked) > 0 {
		unused = &f.looked[0]
	}
	for _, dir := range filepath.SplitList(opts.Path) {
		if !filepath.IsAbs(dir) {
			continue // it would be another directory for each working directory
		}
		if found, ok := f.try(filepath.Join(dir, "python3"), SourcePath); ok {
			found.Unused = unused
			return found, nil
		}
	}
	for _, path := range opts.System {
		if found, ok := f.try(path, SourceSystem); ok {
			found.Unused = unused
			return found, nil
		}
	}
	return Interpreter{}, &NotFoundError{f.looked, "install Python 3 for the whole system (the package is often named python3), or name one in python.interpreter"}
}

// finder keeps what was looked at.
type finder struct {
	FindOptions
	looked []Looked
}

func (f *finder) failed(path string, why error) (Interpreter, bool) {
	f.looked = append(f.looked, Looked{path, why})
	return Interpreter{}, false
}

// configured takes what the user named, and gives what must be bound where a run does not see it: the
// user's own configuration is what may widen a run's view, by an installation of Python and no more.
func (f *finder) configured() (Interpreter, bool) {
	path, err := f.resolveShim(f.Config)
	if err != nil {
		return f.failed(f.Config, err)
	}
	if err := checkProgram(path); err != nil {
		return f.failed(path, err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return f.failed(path, cause(err))
	}
	if !f.Visible(path) && !isPrefix(prefixOf(path)) {
		path = real // a mere link, say from ~/bin: the directory around it is none of a run's business
	}
	found := Interpreter{Path: path, Source: SourceConfig}
	for _, p := range []string{path, real} {
		if f.Visible(p) {
			continue
		}
		bind := prefixOf(p)
		if !isPrefix(bind) {
			bind = p
		}
		if !slices.Contains(found.Prefix, bind) {
			found.Prefix = append(found.Prefix, bind)
		}
	}
	return found, true
}

// project takes the workspace's .venv if the interpreter behind it is one that a run sees. What its
// links and its pyvenv.cfg say is the workspace's word; it opens nothing to a run.
func (f *finder) project() (Interpreter, bool) {
	if f.Workspace == "" {
		return Interpreter{}, false
	}
	venv := filepath.Join(f.Workspace, ".venv")
	path := filepath.Join(venv, "bin", "python")
	if _, err := os.Lstat(venv); errors.Is(err, fs.ErrNotExist) {
		return Interpreter{}, false // most projects have none: not worth a word
	}
	if f.checkSeen(path) != nil {
		// One reason for all, since this is told to whoever made the link: a closer one would say what
		// there is on the host, where runs see nothing.
		return f.failed(path, errNoProgram)
	}
	if real, err := filepath.EvalSymlinks(venv); err != nil || !f.Visible(real) {
		return f.failed(path, errors.New("the directory behind the link .venv is one that runs do not see"))
	}
	// A virtual environment that was made with copies has no link to its base; pyvenv.cfg names it.
	cfg, err := untrusted.ReadFile(venv, "pyvenv.cfg", 64<<10)
	if err != nil {
		return f.failed(path, fmt.Errorf("its pyvenv.cfg: %w", cause(err)))
	}
	if home := venvHome(cfg); !filepath.IsAbs(home) || !f.Visible(filepath.Clean(home)) {
		return f.failed(path, errors.New("runs do not see the interpreter that it was made with"))
	}
	return Interpreter{Path: path, Source: SourceProject}, true
}

// venvHome returns the directory of the base interpreter that a pyvenv.cfg names.
func venvHome(cfg []byte) string {
	for line := range strings.Lines(string(cfg)) {
		if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "home" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// try takes an interpreter of the host if a run sees it.
func (f *finder) try(path string, source Source) (Interpreter, bool) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if source == SourceSystem {
			return f.failed(path, cause(err))
		}
		return Interpreter{}, false // most directories of a PATH hold none
	}
	resolved, err := f.resolveShim(path)
	if err != nil {
		return f.failed(path, err)
	}
	if err := f.checkSeen(resolved); err != nil {
		return f.failed(resolved, err)
	}
	return Interpreter{Path: resolved, Source: source}, true
}

// maxLinks is the kernel's own bound on the links in one path.
const maxLinks = 40

// checkSeen reports whether a run can execute path: it, each link that it leads through and the
// program at the end must all be seen.
func (f *finder) checkSeen(path string) error {
	if err := checkProgram(path); err != nil {
		return err
	}
	for hop, n := path, 0; n < maxLinks; n++ {
		if !f.Visible(hop) {
			return errNotSeen
		}
		target, err := os.Readlink(hop)
		if err != nil {
			break // the end of the chain
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(hop), target)
		}
		hop = filepath.Clean(target)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return cause(err)
	}
	if !f.Visible(real) {
		return errNotSeen
	}
	return nil
}

// checkProgram follows links, as executing it would.
func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return cause(err)
	case !info.Mode().IsRegular():
		return errNotRegular
	case info.Mode()&0o111 == 0:
		return errNotExec
	}
	return nil
}

// prefixOf gives the installation that a program in a bin directory belongs to, if there is one:
// isPrefix says.
func prefixOf(path string) string {
	return filepath.Dir(filepath.Dir(path))
}

// isPrefix reports whether dir is an installation of Python or a virtual environment, by the
// landmarks that Python itself looks for. A home directory is neither, whatever is in its bin, nor
// is ~/.local with its lib/python3.11/site-packages.
func isPrefix(dir string) bool {
	if isFile(filepath.Join(dir, "pyvenv.cfg")) {
		return true
	}
	for _, lib := range []string{"lib", "lib64"} {
		if found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), lib, "python3*", "os.py")); len(found) > 0 {
			return true
		}
	}
	return false
}

// escapeGlob makes a directory's own name safe in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// cause takes the path off an error of package os: it stands beside it already.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
