package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

func trustCommand() command {
	c := command{
		name:    "trust",
		args:    "[flags]",
		summary: "accept this workspace's project policy as it is now",
		help: `Shows what the project policy, .airlock.toml in the workspace, would change beyond
narrowing what you allow, and asks for a yes on the terminal. What is accepted is
exactly this content in exactly this place: a changed file is not trusted.

    airlock trust --workspace ~/project

` + commonHelp,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		var common commonFlags
		common.register(flags)
		s, status, done := common.begin(a, c, flags, args)
		if done {
			return status
		}
		if err := trust(s, a.stdout, openTerminal); err != nil {
			printError(a.stderr, err)
			if errors.As(err, new(refusedWorkspace)) {
				return exitUsage
			}
			return exitFailed
		}
		return exitOK
	}
	return c
}

// refusedWorkspace marks the error of a directory that can't be a workspace.
type refusedWorkspace struct{ error }

func (e refusedWorkspace) Unwrap() error { return e.error }

// trust shows the project's policy in s's workspace and asks for a yes on the terminal.
func trust(s setup, out io.Writer, terminal func() (io.ReadWriteCloser, error)) error {
	dir, err := s.here()
	if err != nil {
		return err
	}
	if dir, err = s.rules.open(dir); err != nil {
		return refusedWorkspace{err}
	}
	policy, err := readProjectPolicy(dir)
	if err != nil {
		return err
	}
	if policy == nil {
		return &fault{Where: tomlText(dir), Msg: "there is no " + policyName + " here, so there is nothing to trust"}
	}
	changes, err := policy.changes(s.user)
	if err != nil {
		return err
	}
	// What could not come into force need not be asked about.
	inForce, err := s.user.apply(changes)
	if err != nil {
		return err
	}
	wider := false
	for _, c := range changes {
		wider = wider || c.widens != ""
	}
	if !wider {
		fmt.Fprintf(out, "%s only narrows what you allow: it is in force without being trusted.\n", policyName)
		return nil
	}
	store := s.places.trust()
	if trusted, _, err := store.holds(policy); err != nil {
		return err
	} else if trusted {
		fmt.Fprintf(out, "%s in %s is trusted as it is now already.\n", policyName, tomlText(dir))
		return nil
	}
	yes, err := ask(terminal, dir, changes, inForce.idle())
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("not trusted: the answer was not yes")
	}
	if err := s.places.makeState(); err != nil {
		return err
	}
	if err := store.add(policy); err != nil {
		return fmt.Errorf("what is trusted can't be written: %w", err)
	}
	fmt.Fprintf(out, "%s in %s is trusted as it is now.\n", policyName, tomlText(dir))
	return nil
}

// ask shows the changes, and what would have no effect all the same, and reads the answer.
func ask(terminal func() (io.ReadWriteCloser, error), dir string, changes []change, idle []*fault) (bool, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s would change:\n\n", policyName, tomlText(dir))
	for _, c := range changes {
		mark := "          "
		if c.widens != "" {
			mark = "  WIDENS  "
		}
		fmt.Fprintf(&b, "%s%s\n            from  %s\n            to    %s\n", mark, c.key.name, tomlValue(c.from), tomlValue(c.to))
	}
	for _, f := range idle {
		b.WriteString("\n" + forModel(f).Error() + "\n")
	}
	b.WriteString("\nAnyone who could write in this directory could have written this.\nTrust it as it is now? Type yes: ")
	return confirm(terminal, b.String(), "run `airlock trust` in a terminal of yours; only a person can accept a project policy")
}
