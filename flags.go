package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/charmbracelet/log"

	"airlock/sandbox"
)

// commonFlags are the flags of every subcommand that looks at the configuration.
type commonFlags struct {
	workspace string
	config    string
	backend   string
	logFile   string
	logLevel  string
}

// commonHelp describes them.
const commonHelp = `Flags (each with the variable that stands for it):
    --workspace DIR    AIRLOCK_WORKSPACE         the directory to work in
    --config FILE      AIRLOCK_CONFIG            the user file, in place of ~/.config/airlock/config.toml
    --backend NAME     AIRLOCK_SANDBOX_BACKEND   auto, native, bwrap or direct: how runs are isolated
`

// logHelp describes the flags of registerLog.
const logHelp = `    --log-file FILE    AIRLOCK_LOG_FILE          logs go there too, beside standard error
    --log-level LEVEL  AIRLOCK_LOG_LEVEL         debug, info, warn or error
`

func (f *commonFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.workspace, "workspace", "", "")
	flags.StringVar(&f.config, "config", "", "")
	flags.StringVar(&f.backend, "backend", "", "")
}

// registerLog adds the flags of a subcommand that writes a log.
func (f *commonFlags) registerLog(flags *flag.FlagSet) {
	flags.StringVar(&f.logFile, "log-file", "", "")
	flags.StringVar(&f.logLevel, "log-level", "", "")
}

// orVariable returns what a flag says, or else what its variable says.
func orVariable(flag string, environ []string, variable string) string {
	if flag != "" {
		return flag
	}
	return lookup(environ, variable)
}

// flagValue is a flag that sets a key of the configuration.
type flagValue struct {
	flag  string
	key   configKey
	value string
}

// setup is what a subcommand knows once its flags, the environment and the user file were read.
type setup struct {
	places places
	user   settings // what the user says; a project's policy is not in it
	file   configFile
	reread func() (settings, error) // user, as it is by now
	rules  workspaceRules

	// workspace is what --workspace or its variable names, as written; "" leaves it to the client's
	// roots or the working directory.
	workspace string

	// chooser says what sandbox.backend = "auto" comes to.
	chooser *chooser
}

// setUp reads the user's configuration. Its error is for printError, with exit status 2.
func (f commonFlags) setUp(environ []string) (setup, error) {
	p, err := findPlaces(environ)
	if err != nil {
		return setup{}, err
	}
	named := func(flag, variable string) string { return fromHome(orVariable(flag, environ, variable), p.home) }
	file := configFile{path: named(f.config, configVariable)}
	if file.named = file.path != ""; file.named {
		if file.path, err = filepath.Abs(file.path); err != nil {
			return setup{}, err
		}
	} else {
		file.path = p.userFile()
	}
	var flags []flagValue
	if f.backend != "" {
		key, _ := findKey("sandbox.backend")
		flags = append(flags, flagValue{"--backend", key, f.backend})
	}
	reread := func() (settings, error) { return userSettings(file, environ, flags) }
	user, err := reread()
	if err != nil {
		return setup{}, err
	}
	rules := workspaceRules{places: p, configFile: file.path, logFile: named(f.logFile, logFileVariable)}
	if rules.logFile != "" {
		if rules.logFile, err = filepath.Abs(rules.logFile); err != nil {
			return setup{}, err
		}
	}
	return setup{
		places:    p,
		user:      user,
		file:      file,
		reread:    reread,
		rules:     rules,
		workspace: named(f.workspace, workspaceVariable),
		chooser:   newChooser(p.state),
	}, nil
}

// begin reads the arguments of a command that takes flags only, and then the configuration. If done, what
// had to be said is said, and the command ends with status.
func (f *commonFlags) begin(a app, c command, flags *flag.FlagSet, args []string) (s setup, status int, done bool) {
	if status, done := parseFlags(a, c, flags, args); done {
		return setup{}, status, true
	}
	if status, done := noArguments(a, c, flags); done {
		return setup{}, status, true
	}
	s, err := f.setUp(a.environ)
	if err != nil {
		printError(a.stderr, err)
		return setup{}, exitUsage, true
	}
	return s, exitOK, false
}

// opened is a workspace with the settings that hold in it.
type opened struct {
	dir      string // real path
	alias    string // an absolute path that leads to dir, as it was given
	settings settings
	policy   *projectPolicy // nil if the project has none
	trusted  bool           // the policy was accepted as it is
	network  *network
	rules    workspaceRules
	auto     func() (sandbox.Backend, error) // what the backend "auto" comes to, from setup's chooser
	ahead    *backendAhead                   // begun before the workspace was opened for runs; nil if none was
}

// allowGit says why a directory outside of the workspace may not be written as its git directory, if it may
// not: what can't be a workspace can't be that.
func (o opened) allowGit(dir string) error {
	_, err := o.rules.open(dir)
	var f *fault
	if errors.As(err, &f) {
		return errors.New(f.Msg)
	}
	return err
}

// open judges the directory dir and puts the project's policy into force.
func (s setup) open(dir string) (opened, error) {
	real, err := s.rules.open(dir)
	if err != nil {
		return opened{}, err
	}
	o := opened{dir: real, alias: real, settings: s.user, rules: s.rules, auto: s.chooser.open}
	if abs, err := filepath.Abs(dir); err == nil {
		o.alias = abs
	}
	if o.policy, err = readProjectPolicy(real); err != nil {
		return o, err
	}
	if o.policy != nil {
		if err := s.places.enterState(); err != nil {
			return opened{}, err
		}
		if o.trusted, o.policy.changed, err = s.places.trust().holds(o.policy); err != nil {
			return opened{}, err
		}
		o.settings, err = s.user.under(o.policy, o.trusted)
	}
	o.network = s.newNetwork(o)
	return o, err
}

// here returns the directory that was named as the workspace, or else the working directory.
func (s setup) here() (string, error) {
	if s.workspace != "" {
		return s.workspace, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("the working directory: %w", err)
	}
	return dir, nil
}

// openHere opens the workspace that was named, or else the working directory.
func (s setup) openHere() (opened, error) {
	dir, err := s.here()
	if err != nil {
		return opened{}, err
	}
	return s.open(dir)
}

// logger makes the log that the flags and their variables describe.
func (f commonFlags) logger(a app) (*log.Logger, func(), error) {
	return newLogger(a.stderr, a.path(orVariable(f.logFile, a.environ, logFileVariable)), orVariable(f.logLevel, a.environ, logLevelVariable))
}
