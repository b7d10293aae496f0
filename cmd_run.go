package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"airlock/internal/units"
	"airlock/tools"
)

func runCommand() command {
	c := command{
		name:    "run",
		args:    "[flags] [--] COMMAND [ARG...]",
		summary: "one run through the same core, for people",
		help: `Runs a command in the sandbox and lands its changes if it ends well. One argument is
text for the shell; several are a program and its arguments. The output is streamed;
what became of the workspace is said on standard error. The command's own standard
input is empty.

    airlock run --workspace ~/project --timeout 10m -- make test
    airlock run 'grep -r TODO . | wc -l'

The exit status is the command's own, 128 and the signal's number if a signal ended
it, 124 after a timeout, 130 if you stopped it, 125 if airlock itself failed, for which
a wrong configuration is enough.

` + commonHelp + `    --timeout DURATION the longest that the command may take, as in 90s or 10m
`,
		flagsFirst: true,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		var common commonFlags
		common.register(flags)
		timeout := flags.String("timeout", "", "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if flags.NArg() == 0 {
			return usageError(a, c, "no command to run")
		}
		command := commandLine(flags.Args())
		if strings.TrimSpace(command) == "" {
			return usageError(a, c, "no command to run: the argument is empty")
		}
		s, err := common.setUp(a.environ)
		if err != nil {
			printError(a.stderr, err)
			return exitAirlock
		}
		o, err := s.openHere()
		if err != nil {
			printError(a.stderr, err)
			return exitAirlock
		}
		request := tools.Request{Tool: "run_shell", Command: command, Tee: a.stdout}
		if request.Timeout, err = runTimeout(*timeout, o.settings.Limits); err != nil {
			return usageError(a, c, err.Error())
		}
		result, err := asOneControlled(ctx, s.places, o.dir, request, func(ctx context.Context, r tools.Request) (tools.Result, error) {
			return oneRun(ctx, a, s.places, o, r)
		})
		if err != nil {
			printError(a.stderr, err)
			return exitAirlock
		}
		printOutcome(a, result)
		return statusOf(result)
	}
	return c
}

// commandLine makes shell text of arguments. One is that already; several are words.
func commandLine(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shellWord(arg)
	}
	return strings.Join(words, " ")
}

// runTimeout reads --timeout; 0 leaves it to limits.timeout.
func runTimeout(text string, limits tools.Limits) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := units.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--timeout: %w", err)
	case d == 0:
		return 0, errors.New("--timeout: 0s is no time at all")
	case d > limits.MaxTimeout:
		return 0, fmt.Errorf("--timeout: %s is more than limits.max_timeout, which is %s", d, limits.MaxTimeout)
	}
	return d.Std(), nil
}

// oneRun opens the workspace, says what this host can't hold, does one run and closes it.
func oneRun(ctx context.Context, a app, p places, o opened, r tools.Request) (result tools.Result, err error) {
	runner, err := openRunner(ctx, p, o, a.environ)
	if err != nil {
		return tools.Result{}, err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	for _, note := range runner.Notes() {
		printLine(a.stderr, "airlock: note: "+note)
	}
	return runner.Run(ctx, r, nil)
}

// printOutcome says what a result says below the output, which the person has seen already.
func printOutcome(a app, result tools.Result) {
	result.Output, result.OutputDroppedBytes = "", 0
	for line := range strings.Lines(result.Text()) {
		if !strings.HasPrefix(line, "exit=") || result.Status != tools.StatusExited {
			printLine(a.stderr, "airlock: "+strings.TrimSuffix(line, "\n"))
		}
	}
}

// statusOf is the exit status for a result.
func statusOf(result tools.Result) int {
	switch {
	case result.Status == tools.StatusExited && result.ExitCode != nil:
		return *result.ExitCode
	case result.Status == tools.StatusTimeout:
		return exitTimeout
	case result.Status == tools.StatusSignaled:
		return 128 + signalNumber(result.Signal)
	case result.Status == tools.StatusLimit:
		return 128 + signalNumber("SIGKILL") // that is how it was ended
	case result.Status == tools.StatusCancelled:
		return 128 + signalNumber("SIGINT") // only the person at the terminal cancels
	}
	return exitAirlock
}
