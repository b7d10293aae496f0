package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"airlock/tools"
)

func serveCommand() command {
	c := command{
		name:    "serve",
		args:    "[flags]",
		summary: "serve MCP on standard input and output; what runs without a command",
		help: `Serves the tools over MCP: JSON-RPC on standard input and output, logs on standard
error. Agents and editors start it; ` + "`airlock client NAME`" + ` prints how.

    airlock serve --workspace ~/project

Without --workspace the workspace is the client's only root, else the working
directory. A user file or a --workspace that is wrong ends it with status 2; what is
wrong with a workspace that was not named is said in the answer to the first call.

` + commonHelp + logHelp,
		flagsFirst: true, // it takes no argument; a command with flags of its own may have been meant
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		var common commonFlags
		common.register(flags)
		common.registerLog(flags)
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if named, ok := findCommand(flags.Arg(0)); ok {
			return commandFirst(a, named, args, flags.Args()[1:])
		}
		if meantCommand(flags.Arg(0)) != "" {
			return unknownCommand(a, "airlock: unknown command", flags.Arg(0))
		}
		if status, done := noArguments(a, c, flags); done {
			return status
		}
		logger, closeLog, err := common.logger(a)
		if err != nil {
			printError(a.stderr, err)
			return exitUsage
		}
		defer closeLog()
		if isTerminal(a.stdin) {
			fmt.Fprintln(a.stderr, "airlock: waiting for an MCP client on standard input, which is a terminal; Ctrl-D ends it\nhint: `airlock help` lists the commands, `airlock client NAME` prints how a client starts this")
		}
		s, err := common.setUp(a.environ)
		if err != nil {
			printError(a.stderr, err)
			return exitUsage
		}
		return serve(ctx, a, s, slog.New(logger))
	}
	return c
}

// commandFirst refuses args, which are flags, the name of a command and rest: without a command in front they are of serve.
func commandFirst(a app, named command, args, rest []string) int {
	words := []string{"airlock", named.name}
	for _, word := range slices.Concat(args[:len(args)-len(rest)-1], rest) {
		words = append(words, shellWord(word))
	}
	printLine(a.stderr, "airlock: the command comes first: `"+strings.Join(words, " ")+"`")
	return exitUsage
}

// serve has one conversation.
func serve(ctx context.Context, a app, s setup, log *slog.Logger) int {
	// A workspace that is named is opened now, so that what is wrong with it or with its policy is said
	// before the client is told anything. Else the client's roots decide, at the first call.
	inForce := s.user
	var ahead atomic.Pointer[backendAhead] // taken by whoever opens the workspace
	defer func() {
		if err := errors.Join(ahead.Swap(nil).close(), s.chooser.close()); err != nil {
			log.Warn("what was begun for runs did not end well", "err", err)
		}
	}()
	if s.workspace != "" {
		o, err := s.open(s.workspace)
		if err != nil {
			printError(a.stderr, err)
			return exitUsage
		}
		inForce = o.settings
		if uid, gid, err := runAs(o.dir); err == nil { // else openRunner says what is wrong
			ahead.Store(inForce.backendAhead(s.chooser.open, uid, gid))
		}
		log.Info("serving", "workspace", o.dir, "project policy", o.projectState())
	} else if err := s.faultHere(); err != nil {
		log.Warn("no run is possible in the working directory, which is the workspace if the client names none", "err", forModel(err))
	}
	idle := &idleLog{log: log}
	idle.say(inForce)
	// A client that is gone must not end the process before its runs are discarded.
	signal.Ignore(syscall.SIGPIPE)
	kept := outputs{state: s.places.state}
	if err := kept.clear(); err != nil {
		log.Warn("the output of runs of a server that was killed could not be removed", "err", err)
	}
	defer func() {
		if err := kept.close(); err != nil {
			log.Warn("the output of runs could not be removed", "err", err)
		}
	}()
	policy := inForce.describe()
	policy.Isolation = inForce.isolation(s.chooser.choose)
	runs := &conversation{}
	runs.Server = tools.New(tools.Options{
		Version:    version(),
		Policy:     policy,
		Tools:      inForce.Tools,
		AskRoots:   s.workspace == "",
		OpenAhead:  s.workspace != "",
		Log:        log,
		OutputFile: kept.file,
		Open: func(ctx context.Context, roots []string) (tools.Runner, error) {
			dir := s.workspace
			if dir == "" {
				cwd, err := os.Getwd()
				if err != nil {
					return nil, err
				}
				if dir, err = workspaceFromRoots(roots, cwd); err != nil {
					return nil, forModel(err)
				}
			}
			o, err := s.open(dir)
			if err != nil {
				return nil, forModel(err)
			}
			o.ahead = ahead.Swap(nil)
			runner, err := openRunner(ctx, s.places, o, a.environ)
			if err != nil {
				return nil, forModel(err)
			}
			runner.Prepare()
			idle.say(o.settings)
			o.network.tell(func(s settings) {
				idle.say(s)
				runs.Notice("the user's configuration was changed: its [network] is in force from this run on")
			})
			runs.opened(o.dir)
			log.Info("opened", "workspace", o.dir, "project policy", o.projectState())
			return runner, nil
		},
	})
	defer controlled(s.places, runs, log)()
	defer s.chooser.verifyLater(func(err error) { log.Warn("runs will be refused until airlock is restarted", "err", err) })()
	err := tools.Serve(ctx, a.stdin, a.stdout, runs.Server)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, tools.ErrClientGone): // many clients leave like that
		log.Info("the conversation ended", "reason", err)
	default:
		log.Error("the conversation ended", "err", err)
		return exitFailed
	}
	return exitOK
}

// faultHere is what is wrong with the project's policy in the working directory, if that can be a workspace at all: whoever
// starts a server without naming one need not wait for the first call to learn it.
func (s setup) faultHere() error {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, policyName)); err != nil {
		return nil // most have none, and a client waits
	}
	if _, err := s.rules.open(dir); err != nil {
		return nil // the client has to name another one, and many do
	}
	_, err = s.open(dir)
	return err
}

// isTerminal says whether a person may be typing at f: a character device that isn't the null device.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
