package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"airlock/envs"
	"airlock/internal/filelock"
	"airlock/internal/units"
)

func envsCommand() command {
	c := command{
		name:    "envs",
		args:    "[--json | remove NAME | revoke GRANT]",
		summary: "the environments with their packages, and the standing grants",
		help: `Lists the named environments, what each holds, and what you allowed with "always".
A grant that is revoked permits nothing any more; what was installed stays. An environment
that is removed is empty from the next run on, in all conversations, and its grants are
revoked. What it was made of airlock keeps for some time, unless airlock clean frees it.

    airlock envs
    airlock envs remove default
    airlock envs revoke 7f3a09c1

Flags:
    --json             print the list as JSON
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		asJSON := flags.Bool("json", false, "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		switch {
		case flags.NArg() == 0 && *asJSON:
			return withStore(a, func(s *envs.Store) error { return printEnvironmentsJSON(a.stdout, s) })
		case *asJSON:
			return usageError(a, c, "--json is for the list")
		case flags.NArg() == 0:
			return withStore(a, func(s *envs.Store) error { return printEnvironments(a.stdout, a.paint(), a.columns(), s) })
		case flags.NArg() == 2 && flags.Arg(0) == "remove":
			return withStore(a, func(s *envs.Store) error { return removeEnvironment(ctx, a.stdout, s, flags.Arg(1)) })
		case flags.Arg(0) != "revoke" || flags.NArg() != 2:
			return usageError(a, c, "takes nothing, or remove and the name of an environment, or revoke and the id of a grant")
		}
		return withStore(a, func(s *envs.Store) error {
			err := s.Revoke(ctx, flags.Arg(1))
			if errors.Is(err, fs.ErrNotExist) {
				return &fault{Msg: "there is no grant " + tomlText(flags.Arg(1)), Hint: "`airlock envs` lists them"}
			}
			if err == nil {
				fmt.Fprintln(a.stdout, "Revoked.")
			}
			return err
		})
	}
	return c
}

// removeEnvironment says what is gone, so that whoever wants it back knows what to ask for.
func removeEnvironment(ctx context.Context, w io.Writer, s *envs.Store, name string) error {
	removed, err := s.Remove(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fault{Msg: "there is no environment " + tomlText(name), Hint: "`airlock envs` lists them"}
	case errors.Is(err, filelock.ErrHeld):
		return &fault{Msg: "something is being installed into the environment " + tomlText(name), Hint: "try again when that has ended"}
	case err != nil:
		return err
	}
	for _, e := range removed.Environments {
		fmt.Fprintf(w, "Removed %s for %s. They were asked for as: %s\n", units.Counted(len(e.Packages), "package"), printable(e.Python), printable(strings.Join(e.Roots, ", ")))
	}
	if n := len(removed.Grants); n > 0 {
		fmt.Fprintf(w, "Revoked %s for it.\n", units.Counted(n, "grant"))
	}
	return nil
}

// printEnvironments writes a line an environment, with its packages below, and then the grants. All of it
// was validated when it was read.
func printEnvironments(w io.Writer, p paint, columns int, s *envs.Store) error {
	var b strings.Builder
	all, err := s.Environments()
	if len(all) == 0 {
		b.WriteString("There are no environments yet.\n")
	}
	for _, e := range all {
		fmt.Fprintf(&b, "%s  (%s, %s in %s)\n", p.in(bold, e.Name), printable(e.Python),
			units.Counted(len(e.Packages), "package"), units.Counted(len(e.Layers), "layer"))
		for _, one := range e.Packages {
			fmt.Fprintf(&b, "    %s %s\n", one.Name, one.Version)
		}
	}
	grants, grantsErr := s.Grants()
	if len(grants) > 0 {
		b.WriteString("\nInstalled without a question, until airlock envs revoke ID:\n")
	}
	for _, g := range grants {
		fmt.Fprintf(&b, "%s  into %s: %s, from %s\n", p.in(bold, g.ID), g.Environment, strings.Join(g.Names, ", "), printable(g.Index))
	}
	_, writeErr := io.WriteString(w, fold(b.String(), columns, 4))
	return errors.Join(err, grantsErr, writeErr)
}

func printEnvironmentsJSON(w io.Writer, s *envs.Store) error {
	all, err := s.Environments()
	grants, grantsErr := s.Grants()
	return errors.Join(err, grantsErr, printJSON(w, struct {
		Environments []envs.Environment `json:"environments"`
		Grants       []envs.Grant       `json:"grants"`
	}{append([]envs.Environment{}, all...), append([]envs.Grant{}, grants...)}))
}
