// Package envs knows the language environments that runs use: which Python a run can execute, found by
// [FindPython], and the environments of packages that a [Conversation] installs into and mounts.
//
// # What an attacker controls
//
// Of the workspace: its .venv, where the links in it point, its pyvenv.cfg and its .python-version. None of it
// is executed here. A link or a version name only chooses among interpreters that runs see anyway, names are
// taken only if they are made of letters that no path needs, and files are read with a bound and without
// following links. For environments the workspace is not looked at.
//
// Of packages: everything. The names that a model asks for, all that an index answers, the report of an
// installer that believed it, each byte of a wheel. Requirements are read by a grammar without options, paths
// and addresses; what an installer gets is written anew from that. The report counts for nothing but names,
// versions and hashes, and each of them is checked. Wheels are looked at before they are unpacked, and what an
// installation left is walked without following links. Nothing of a package is executed by this process: each
// step runs by an [Installer], which is a sandbox, and everything that a step wrote is read when it has ended.
//
// # Life cycle
//
//	store, err := envs.OpenStore("/home/u/.local/state/airlock/envs")
//	…
//	c, err := envs.Begin(ctx, envs.Options{Store: store, Installer: sandboxed, Packages: config, …})
//	…
//	defer c.Close()
//	plan, err := c.Plan(ctx, envs.Want{Environment: "default", Requirements: []string{"six>=1.16"}}, nil)
//	…
//	if ok, err := c.Permitted(ctx, plan); err == nil && !ok {
//		… // ask the user plan.Question, or c.Leave(ctx, plan) for an answer on the command line
//	}
//	done, err := c.Apply(ctx, plan, nil) // nothing changed before it returns nil
//	…
//	tree, err := c.Mount(ctx, "default")
//	… // bind tree.Root read-only at tree.MountPoint(), run, then
//	tree.Release()
//
// # Vocabulary
//
//   - prefix of an interpreter: the directory that its standard library is found from; of /usr/bin/python3 it is
//     /usr.
//   - shim: a script of pyenv's that looks up a version each time and then executes that interpreter.
//   - wheel: an archive of a package that is ready to be unpacked. What is no wheel is not installed, since
//     building runs its code.
//   - lock line: a name, a version and a hash, which one file in the world fits.
//   - layer: what one set of lock lines installs into an empty environment.
//   - environment: a name, and an ordered list of layers.
//   - base: the packages of python.base, below every environment.
//   - tree: what a run sees of an environment, made of hard links to its layers.
//   - library: a tree of R packages, which runs see at /env-r.
//   - additive: an installation that changes nothing which was there.
//   - root: a requirement that was asked for, as opposed to what it requires.
//
// # Limitations
//
// Of shims only pyenv's are resolved; those of other version managers are used as they are, if a run
// sees them.
//
// Python packages are installed with pip, and only wheels. The hashes are those of the index at the time of the
// plan: it is the index that is trusted to serve the package that its name says. A repository of R packages has no
// hash that counts: there the plan fetches what is new, and the hash is of that. R packages are built, which
// executes their code, in a sandbox without a network, and belong to named environments only. Two packages with a file of
// the same name and different content can't be in one environment. Extras are not verified after an
// installation: pip resolved them, and the metadata of a wheel does not say which of them were asked for.
// That a shared library is missing is said of what the system's loader is configured to find, and is advice.
package envs
