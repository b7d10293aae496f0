//go:build unix

package envs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree makes files below a fresh directory: a content that begins with "-> " is a link, and every
// other file may be executed. Its real path is returned.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(strings.ReplaceAll(target, "ROOT", root), path)
		} else {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(content, "ROOT", root)), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFindPython(t *testing.T) {
	pyenv := map[string]string{
		"home/.pyenv/shims/python3":                "#!/usr/bin/env bash\n",
		"home/.pyenv/version":                      "3.9\n",
		"home/.pyenv/versions/3.9.2/bin/python3":   "x",
		"home/.pyenv/versions/3.9.18/bin/python3":  "x",
		"home/.pyenv/versions/3.11.7/bin/python3":  "x",
		"home/.pyenv/versions/3.110.0/bin/python3": "x",
	}
	with := func(more map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{pyenv, more} {
			for k, v := range m {
				all[k] = v
			}
		}
		return all
	}
	for _, tt := range []struct {
		name    string
		files   map[string]string
		config  string
		path    string // PATH
		version string // PYENV_VERSION
		seen    string // what runs see, colon-separated
		want    string // the path
		source  Source
		prefix  []string
		unused  string // why the project's .venv is not used
		err     string
	}{
		{
			name:  "system",
			files: map[string]string{"usr/bin/python3": "-> python3.11", "usr/bin/python3.11": "x"},
			seen:  "ROOT/usr", want: "ROOT/usr/bin/python3", source: SourceSystem,
		},
		{
			name:  "path before system",
			files: map[string]string{"opt/bin/python3": "x", "usr/bin/python3": "x"},
			path:  "relative::ROOT/none:ROOT/opt/bin",
			seen:  "ROOT/usr:ROOT/opt", want: "ROOT/opt/bin/python3", source: SourcePath,
		},
		{
			name:  "path that runs do not see",
			files: map[string]string{"home/u/bin/python3": "x", "usr/bin/python3": "x"},
			path:  "ROOT/home/u/bin",
			seen:  "ROOT/usr", want: "ROOT/usr/bin/python3", source: SourceSystem,
		},
		{
			name:  "link from a seen place to one that is not",
			files: map[string]string{"opt/bin/python3": "-> ROOT/home/u/python3", "home/u/python3": "x", "usr/bin/python3": "x"},
			path:  "ROOT/opt/bin",
			seen:  "ROOT/usr:ROOT/opt", want: "ROOT/usr/bin/python3", source: SourceSystem,
		},
		{
			name:  "link that leads through a place that is not seen",
			files: map[string]string{"opt/bin/python3": "-> ROOT/home/u/python3", "home/u/python3": "-> ROOT/usr/bin/python3", "usr/bin/python3": "x"},
			path:  "ROOT/opt/bin",
			seen:  "ROOT/usr:ROOT/opt", want: "ROOT/usr/bin/python3", source: SourceSystem,
		},
		{
			name: "shim, beginning of a version", files: pyenv, path: "ROOT/home/.pyenv/shims",
			seen: "ROOT/home/.pyenv", want: "ROOT/home/.pyenv/versions/3.9.18/bin/python3", source: SourcePath,
		},
		{
			name: "shim, PYENV_VERSION", files: pyenv, path: "ROOT/home/.pyenv/shims", version: "4.0:3.11",
			seen: "ROOT/home/.pyenv", want: "ROOT/home/.pyenv/versions/3.11.7/bin/python3", source: SourcePath,
		},
		{
			name: "shim, the workspace's version", files: with(map[string]string{"ws/.python-version": "# x\n../../evil\n3.11.7\n"}), path: "ROOT/home/.pyenv/shims",
			seen: "ROOT/home/.pyenv:ROOT/ws", want: "ROOT/home/.pyenv/versions/3.11.7/bin/python3", source: SourcePath,
		},
		{
			name: "shim, the workspace's version is a link", files: with(map[string]string{"ws/.python-version": "-> ROOT/secret", "secret": "3.11.7\n"}), path: "ROOT/home/.pyenv/shims",
			seen: "ROOT/home/.pyenv:ROOT/ws", want: "ROOT/home/.pyenv/versions/3.9.18/bin/python3", source: SourcePath,
		},
		{
			name: "shim, not seen", files: with(map[string]string{"usr/bin/python3": "x"}), path: "ROOT/home/.pyenv/shims",
			seen: "ROOT/usr", want: "ROOT/usr/bin/python3", source: SourceSystem,
		},
		{
			name: "shim, the system's", files: with(map[string]string{"usr/bin/python3": "x"}), path: "ROOT/home/.pyenv/shims", version: "system",
			seen: "ROOT/home/.pyenv:ROOT/usr", want: "ROOT/usr/bin/python3", source: SourceSystem,
		},
		{
			name: ".venv of the system's Python",
			files: map[string]string{
				"usr/bin/python3": "x", "ws/.venv/bin/python": "-> python3", "ws/.venv/bin/python3": "-> ROOT/usr/bin/python3",
				"ws/.venv/pyvenv.cfg": "home = ROOT/usr/bin\ninclude-system-site-packages = false\n",
			},
			path: "ROOT/usr/bin", seen: "ROOT/usr:ROOT/ws", want: "ROOT/ws/.venv/bin/python", source: SourceProject,
		},
		{
			name: ".venv of a Python that runs do not see",
			files: map[string]string{
				"usr/bin/python3": "x", "home/u/py/bin/python3": "x", "ws/.venv/bin/python": "-> ROOT/home/u/py/bin/python3",
				"ws/.venv/pyvenv.cfg": "home = ROOT/home/u/py/bin\n",
			},
			path: "ROOT/usr/bin", seen: "ROOT/usr:ROOT/ws", want: "ROOT/usr/bin/python3", source: SourcePath,
			unused: "leads to no program that runs see",
		},
		{
			// The same as for one that is there: the reason tells nothing of what runs do not see.
			name: ".venv of a Python that is nowhere",
			files: map[string]string{
				"usr/bin/python3": "x", "ws/.venv/bin/python": "-> ROOT/home/u/py/bin/python3",
			},
			path: "ROOT/usr/bin", seen: "ROOT/usr:ROOT/ws", want: "ROOT/usr/bin/python3", source: SourcePath,
			unused: "leads to no program that runs see",
		},
		{
			name: ".venv made with copies",
			files: map[string]string{
				"usr/bin/python3": "x", "ws/.venv/bin/python": "x",
				"ws/.venv/pyvenv.cfg": "home = ROOT/home/u/py/bin\n",
			},
			path: "ROOT/usr/bin", seen: "ROOT/usr:ROOT/ws", want: "ROOT/usr/bin/python3", source: SourcePath,
			unused: "runs do not see the interpreter that it was made with",
		},
		{
			name: ".venv that is a link out of the workspace",
			files: map[string]string{
				"usr/bin/python3": "x", "ws/.venv": "-> ROOT/elsewhere", "elsewhere/bin/python": "-> ROOT/usr/bin/python3",
				"elsewhere/pyvenv.cfg": "home = ROOT/usr/bin\n",
			},
			path: "ROOT/usr/bin", seen: "ROOT/usr:ROOT/ws", want: "ROOT/usr/bin/python3", source: SourcePath,
			unused: "the directory behind the link .venv is one that runs do not see",
		},
		{
			name:   "configured, seen",
			files:  map[string]string{"usr/bin/python3.9": "x", "usr/bin/python3": "x"},
			config: "ROOT/usr/bin/python3.9", seen: "ROOT/usr", want: "ROOT/usr/bin/python3.9", source: SourceConfig,
		},
		{
			name:   "configured, bound with its whole prefix",
			files:  map[string]string{"home/u/p[y]/bin/python3": "-> python3.12", "home/u/p[y]/bin/python3.12": "x", "home/u/p[y]/lib/python3.12/os.py": "x"},
			config: "ROOT/home/u/p[y]/bin/python3", seen: "ROOT/usr", want: "ROOT/home/u/p[y]/bin/python3", source: SourceConfig,
			prefix: []string{"ROOT/home/u/p[y]"},
		},
		{
			name: "configured, a link to another prefix",
			files: map[string]string{
				"home/u/bin/python3": "-> ROOT/home/u/py/bin/python3", "home/u/py/bin/python3": "x", "home/u/py/lib/python3.12/os.py": "x",
				"home/u/lib/python3.12/site-packages/x.py": "x",
			},
			config: "ROOT/home/u/bin/python3", seen: "ROOT/usr", want: "ROOT/home/u/py/bin/python3", source: SourceConfig,
			prefix: []string{"ROOT/home/u/py"},
		},
		{
			name:   "configured, a virtual environment outside",
			files:  map[string]string{"usr/bin/python3": "x", "home/u/v/bin/python": "-> ROOT/usr/bin/python3", "home/u/v/pyvenv.cfg": "x"},
			config: "ROOT/home/u/v/bin/python", seen: "ROOT/usr", want: "ROOT/home/u/v/bin/python", source: SourceConfig,
			prefix: []string{"ROOT/home/u/v"},
		},
		{
			name: "configured, a program in a home", files: map[string]string{"home/u/bin/python3": "x"},
			config: "ROOT/home/u/bin/python3", seen: "ROOT/usr", want: "ROOT/home/u/bin/python3", source: SourceConfig,
			prefix: []string{"ROOT/home/u/bin/python3"},
		},
		{
			name: "configured, a shim", files: with(map[string]string{"home/.pyenv/versions/3.9.18/lib/python3.9/os.py": "x"}),
			config: "ROOT/home/.pyenv/shims/python3", seen: "ROOT/usr",
			want: "ROOT/home/.pyenv/versions/3.9.18/bin/python3", source: SourceConfig, prefix: []string{"ROOT/home/.pyenv/versions/3.9.18"},
		},
		{
			name: "configured, missing", files: map[string]string{"usr/bin/python3": "x"}, config: "ROOT/none", seen: "ROOT/usr",
			err: "no Python that a run can execute: ROOT/none: no such file or directory",
		},
		{
			name: "configured, a directory", files: map[string]string{"usr/bin/python3": "x"}, config: "ROOT/usr", seen: "ROOT/usr",
			err: "no Python that a run can execute: ROOT/usr: is not a program",
		},
		{
			name: "none", files: map[string]string{"home/u/bin/python3": "x", "home/.pyenv/shims/python3": "x", "home/.pyenv/versions/x": "x"},
			path: "ROOT/home/u/bin:ROOT/home/.pyenv/shims", version: "4.0", seen: "ROOT/usr",
			err: "no Python that a run can execute: ROOT/home/u/bin/python3: runs do not see it; " +
				"ROOT/home/.pyenv/shims/python3: a shim of pyenv, and no version that is chosen is installed below ROOT/home/.pyenv/versions; " +
				"ROOT/usr/bin/python3: no such file or directory",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			at := func(s string) string { return strings.ReplaceAll(s, "ROOT", root) }
			got, err := FindPython(FindOptions{
				Config: at(tt.config), Workspace: filepath.Join(root, "ws"), Path: at(tt.path), PyenvVersion: tt.version,
				System: []string{filepath.Join(root, "usr/bin/python3")},
				Visible: func(path string) bool {
					for _, dir := range filepath.SplitList(at(tt.seen)) {
						if path == dir || strings.HasPrefix(path, dir+"/") {
							return true
						}
					}
					return false
				},
			})
			if tt.err != "" {
				var notFound *NotFoundError
				if !errors.As(err, &notFound) || err.Error() != at(tt.err) || notFound.Hint == "" {
					t.Errorf("error %v, want %q and a hint", err, at(tt.err))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := Interpreter{Path: at(tt.want), Source: tt.source}
			for _, p := range tt.prefix {
				want.Prefix = append(want.Prefix, at(p))
			}
			why := ""
			if got.Unused != nil {
				why = got.Unused.Why.Error()
			}
			if why != tt.unused {
				t.Errorf(".venv is not used because it %q, want %q", why, tt.unused)
			}
			got.Unused = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("interpreter (-want +got):\n%s", diff)
			}
		})
	}
}

// The machine's own Python is found, whatever that is.
func TestFindPythonHere(t *testing.T) {
	got, err := FindPython(FindOptions{Path: os.Getenv("PATH")})
	var notFound *NotFoundError
	if errors.As(err, &notFound) {
		t.Skipf("no Python here: %v", err)
	}
	if err != nil || checkProgram(got.Path) != nil {
		t.Errorf("found %+v, %v", got, err)
	}
	if strings.Contains(got.Path, "/shims/") {
		t.Errorf("%s is a shim", got.Path)
	}
}

func TestVersionNames(t *testing.T) {
	text := "3.11.7\n\n  3.9 \n../x\n.hidden\na/b\n3.9;x\npypy3.10-7.3\n" + strings.Repeat("9", 65) + "\n"
	if diff := cmp.Diff([]string{"3.11.7", "3.9", "pypy3.10-7.3"}, versionNames(text)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
