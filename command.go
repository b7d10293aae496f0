package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"airlock/internal/spelling"
)

// command is a subcommand.
type command struct {
	name    string
	args    string // the rest of the usage line
	summary string // one line in the list of commands
	help    string // what it does, with an example; flags are described in it
	run     func(ctx context.Context, a app, args []string) int

	// flagsFirst is that flags end at the first argument, since what follows has flags of its own.
	flagsFirst bool
}

// group is the commands for one purpose.
type group struct {
	title    string
	commands []command
}

// groups lists the subcommands as the help does.
func groups() []group {
	return []group{
		{"Runs", []command{serveCommand(), runCommand(), psCommand(), stopCommand()}},
		{"What they changed", []command{logCommand(), diffCommand(), undoCommand(), landCommand(), cleanCommand()}},
		{"What they may", []command{policyCommand(), trustCommand(), allowCommand()}},
		{"Packages", []command{requestsCommand(), approveCommand(), denyCommand(), envsCommand()}},
		{"Setting up", []command{doctorCommand(), clientCommand(), completionCommand(), versionCommand(), helpCommand()}},
	}
}

// commands lists the subcommands in the order of the help.
func commands() []command {
	var all []command
	for _, g := range groups() {
		all = append(all, g.commands...)
	}
	return all
}

// run finds the subcommand and returns the exit status of the process.
func run(ctx context.Context, a app, args []string) int {
	name := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) > 0 {
		switch args[0] {
		case "-h", "-help", "--help":
			name, args = "help", args[1:]
		case "-version", "--version":
			name, args = "version", args[1:]
		}
	}
	c, ok := findCommand(name)
	if !ok {
		return unknownCommand(a, "airlock: unknown command", name)
	}
	return c.run(ctx, a, args)
}

// unknownCommand prints msg with the name that is none of a command, and what may have been meant.
func unknownCommand(a app, msg, name string) int {
	msg += " " + tomlText(name)
	if near := meantCommand(name); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	fmt.Fprintf(a.stderr, "%s\nhint: `airlock help` lists the commands\n", msg)
	return exitUsage
}

// synonyms are words for a command that other programs have for the like.
var synonyms = map[string][]string{
	"serve":    {"start", "mcp"},
	"run":      {"exec", "sh", "shell"},
	"ps":       {"status", "ls", "list", "jobs", "runs"},
	"stop":     {"kill", "cancel"},
	"log":      {"history"},
	"diff":     {"show"},
	"undo":     {"revert", "rollback", "restore"},
	"land":     {"apply", "merge", "promote"},
	"clean":    {"prune", "gc"},
	"policy":   {"config", "settings"},
	"requests": {"pending"},
	"deny":     {"reject", "refuse"},
	"envs":     {"packages"},
	"doctor":   {"check", "probe", "health"},
	"client":   {"setup", "init"},
}

// meantCommand is the command that somebody meant who wrote name, which is none, or "".
func meantCommand(name string) string {
	for command, words := range synonyms {
		if slices.Contains(words, strings.ToLower(name)) {
			return command
		}
	}
	return spelling.Nearest(name, commandNames())
}

func findCommand(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// parseFlags parses the flags of a subcommand, wherever they stand among its arguments; "--" ends them. done is true if
// there is nothing more to do: help was asked for and printed, or the flags are wrong and the fault was printed; then
// status is the exit status.
func parseFlags(a app, c command, flags *flag.FlagSet, args []string) (status int, done bool) {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if err == nil && !c.flagsFirst {
		err = parseRest(flags, args)
	}
	switch {
	case err == nil:
		empty := ""
		flags.Visit(func(f *flag.Flag) {
			if f.Value.String() == "" {
				empty = f.Name
			}
		})
		if empty != "" { // --config "$FILE" with no FILE must not mean another file
			return usageError(a, c, fmt.Sprintf("--%s is empty", empty)), true
		}
		return 0, false
	case errors.Is(err, flag.ErrHelp):
		printHelp(a.stdout, c)
		return exitOK, true
	}
	msg := err.Error()
	if name, ok := strings.CutPrefix(msg, "flag provided but not defined: -"); ok {
		name = strings.TrimPrefix(name, "-")
		msg = fmt.Sprintf("unknown flag --%s", strings.Trim(tomlText(name), `"`))
		var names []string
		flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		if near := spelling.Nearest(name, names); near != "" {
			msg += fmt.Sprintf("; did you mean --%s?", near)
		}
	}
	return usageError(a, c, msg), true
}

// parseRest parses the flags behind the first argument too, where args were parsed up to that, and leaves the arguments
// as those of flags.
func parseRest(flags *flag.FlagSet, args []string) error {
	var words []string
	for flags.NArg() > 0 {
		rest := flags.Args()
		if parsed := len(args) - len(rest); parsed > 0 && args[parsed-1] == "--" {
			words = append(words, rest...)
			break
		}
		words, args = append(words, rest[0]), rest[1:]
		if err := flags.Parse(args); err != nil {
			return err
		}
	}
	return flags.Parse(append([]string{"--"}, words...))
}

// usageError prints what is wrong with a command line.
func usageError(a app, c command, msg string) int {
	printLine(a.stderr, "airlock "+c.name+": "+msg)
	printLine(a.stderr, "hint: `airlock help "+c.name+"` shows how it is used")
	return exitUsage
}

// noArguments refuses arguments where a subcommand takes none.
func noArguments(a app, c command, flags *flag.FlagSet) (status int, done bool) {
	if flags.NArg() == 0 {
		return 0, false
	}
	return usageError(a, c, fmt.Sprintf("takes no argument, got %s", tomlText(flags.Arg(0)))), true
}

func printHelp(w io.Writer, c command) {
	fmt.Fprintf(w, "usage: %s\n\n%s", strings.TrimRight("airlock "+c.name+" "+c.args, " "), c.help)
}
