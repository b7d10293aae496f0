package main

import (
	"context"
	"flag"
	"fmt"
)

func helpCommand() command {
	c := command{
		name:    "help",
		args:    "[COMMAND]",
		summary: "this list, or how a command is used",
		help:    "Lists the commands, or shows how one is used.\n\n    airlock help run\n",
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		switch flags.NArg() {
		case 0:
			printOverview(a)
			return exitOK
		case 1:
			if about, ok := findCommand(flags.Arg(0)); ok {
				printHelp(a.stdout, about)
				return exitOK
			}
			return unknownCommand(a, "airlock help: there is no command", flags.Arg(0))
		}
		return usageError(a, c, "takes one command")
	}
	return c
}

func printOverview(a app) {
	fmt.Fprint(a.stdout, `airlock runs what an agent wants to run in a sandbox, on a workspace: a run that
ends well lands its changes as one transaction, anything else leaves no trace.

usage: airlock [COMMAND] [flags]

In a directory that you don't mind, to begin with:
    airlock doctor                   what holds on this host
    airlock run 'echo hi > file'     one run; airlock undo takes it back
    airlock client NAME              what makes your client start airlock

`)
	for _, g := range groups() {
		fmt.Fprintf(a.stdout, "%s:\n", g.title)
		for _, c := range g.commands {
			fmt.Fprintf(a.stdout, "  %-11s %s\n", c.name, c.summary)
		}
	}
	fmt.Fprint(a.stdout, `
Configuration: flags, AIRLOCK_SECTION_KEY variables, the project's .airlock.toml
(which only narrows), ~/.config/airlock/config.toml. `+"`airlock policy`"+` shows what is
in force and where each value comes from; `+"`airlock help COMMAND`"+` shows more.

Exit status: 0 done; 1 it did not work, or the answer is no; 2 the command line or the
configuration is wrong, and nothing was begun. airlock run has the command's own
besides, 124 after a timeout, 130 if you stopped it, and 125 if airlock itself
failed.
Colours are for terminals; NO_COLOR turns them off, and --json is for scripts.
`)
}
