// Package envs knows the language environments that runs use.
//
// In this version that is one thing: which Python interpreter a run can really execute, found by
// [FindPython]. The [packages] and [python] sections of the configuration stand here too; most of their
// keys are checked today and have a function later, which [Packages.Unsupported] and
// [Python.Unsupported] say.
//
// # What an attacker controls
//
// Everything in the workspace: its .venv, where the links in it point, its pyvenv.cfg and its
// .python-version. None of it is executed here. A link or a version name only chooses among
// interpreters that runs see anyway, names are taken only if they are made of letters that no path
// needs, and files are read with a bound and without following links.
//
// # Life cycle
//
//	python, err := envs.FindPython(envs.FindOptions{
//		Workspace: "/home/u/project",
//		Path:      os.Getenv("PATH"),
//		Visible:   system.Visible, // what the sandbox shows
//	})
//	if err != nil {
//		return err // an *envs.NotFoundError: what was looked at, and the mend
//	}
//	// bind each of python.Prefix read-only, then execute python.Path
//
// # Vocabulary
//
// The prefix of an interpreter is the directory that its standard library is found from: of
// /usr/bin/python3 it is /usr. A shim is a script of pyenv's that looks up a version each time and then
// executes the interpreter of that version.
//
// # Limitations
//
// Of shims only pyenv's are resolved; those of other version managers are used as they are, if a run
// sees them.
package envs
