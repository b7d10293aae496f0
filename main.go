// Command airlock is an MCP tool server over standard input and output. An agent or an editor starts it
// on a workspace; what the model runs there is sandboxed, and a run that ends well lands its changes as
// one transaction, while anything else leaves the workspace as it was.
//
//	airlock --workspace ~/project            serve, which is what runs without a subcommand
//	airlock run --workspace ~/project make   one run through the same core, for people
//	airlock doctor                           what holds on this host, and the mend for what does not
//
// This package is the command line, the configuration and the wiring, and nothing else:
//
//   - a subcommand is a file cmd_NAME.go with its flags, its help and its exit statuses;
//   - the configuration is read by userSettings (defaults, user file, variables, flags) and narrowed by
//     a project's policy in settings.under; each value remembers its origin;
//   - wire.go hands the settings to the packages that act on them.
//
// # What an attacker controls
//
// The project policy, .airlock.toml in the workspace: it is read once, without following links or
// blocking, is never quoted in an error, and may only narrow unless a person at a terminal accepted
// exactly its content. Environment, user file and flags are the user's word.
//
// # Limitations
//
// The question of `airlock trust` is asked on the terminal, so that an agent's other shell does not
// answer it in passing. That is a speed bump: a program that runs as the user outside a sandbox can
// open a terminal of its own, or write the user file.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"airlock/internal/hugeheap"
)

func main() {
	hugeheap.Extend() // the packages that were set up may have filled what it had
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := run(ctx, app{os.Environ(), os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(status)
}

// app is what the process was given.
type app struct {
	environ []string
	stdin   *os.File
	stdout  io.Writer
	stderr  io.Writer
}

// Exit statuses. `airlock run` has those of the command besides.
const (
	exitOK      = 0
	exitFailed  = 1   // it did not work, or the answer is no
	exitUsage   = 2   // the command line, the configuration or the workspace is wrong; nothing was begun
	exitTimeout = 124 // run: the command was ended by its timeout
	exitAirlock = 125 // run: airlock failed, not the command
)
