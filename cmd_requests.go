package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"airlock/envs"
)

func requestsCommand() command {
	c := command{
		name:    "requests",
		args:    "[--json]",
		summary: "package requests that wait for you, or have your answer",
		help: `Lists the package requests of all conversations, the oldest first: what was asked for,
the whole set that it leads to, and the model's reason. airlock approve and airlock
deny answer one.

    airlock requests

Flags:
    --json             print it as JSON
`,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		asJSON := flags.Bool("json", false, "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if status, done := noArguments(a, c, flags); done {
			return status
		}
		return withStore(a, func(s *envs.Store) error {
			all, err := s.Requests()
			if *asJSON {
				return errors.Join(printJSON(a.stdout, map[string][]envs.Request{"requests": append([]envs.Request{}, all...)}), err)
			}
			return errors.Join(printRequests(a.stdout, a.paint(), a.columns(), all), err)
		})
	}
	return c
}

func approveCommand() command {
	c := command{
		name:    "approve",
		args:    "[--always] ID",
		summary: "approve a package request",
		help: `Shows what a package request would install, and asks for a yes on the terminal. The
answer is good for exactly that set, by its hashes, once: the model makes the same
call again, and it is installed.

    airlock approve 7f3a09c1

Flags:
    --always           also let its packages be installed into that environment without
                       a question from now on, in any version; airlock envs revokes it
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		always := flags.Bool("always", false, "")
		id, status, done := oneRequest(a, c, flags, args)
		if done {
			return status
		}
		return withStore(a, func(s *envs.Store) error {
			return approve(ctx, s, id, *always, a.stdout, openTerminal)
		})
	}
	return c
}

func denyCommand() command {
	c := command{
		name:    "deny",
		args:    "ID",
		summary: "deny a package request",
		help: `Denies a package request: the same set is refused without a question from now on.
airlock approve takes that back.

    airlock deny 7f3a09c1
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		id, status, done := oneRequest(a, c, flags, args)
		if done {
			return status
		}
		return withStore(a, func(s *envs.Store) error {
			r, err := s.Answer(ctx, id, false, false)
			if err != nil {
				return requestError(id, err)
			}
			fmt.Fprintf(a.stdout, "Denied: %s for the environment %q.\n", strings.Join(r.Asked, ", "), r.Environment)
			return nil
		})
	}
	return c
}

// oneRequest parses a command line that names one request.
func oneRequest(a app, c command, flags *flag.FlagSet, args []string) (id string, status int, done bool) {
	if status, done := parseFlags(a, c, flags, args); done {
		return "", status, true
	}
	if flags.NArg() != 1 {
		return "", usageError(a, c, "takes the id of one request; airlock requests lists them"), true
	}
	return flags.Arg(0), 0, false
}

// withStore opens the environments and does something with them.
func withStore(a app, do func(*envs.Store) error) int {
	p, err := findPlaces(a.environ)
	if err == nil {
		var dir string
		if dir, err = p.environmentsDir(); err == nil {
			var s *envs.Store
			if s, err = envs.OpenStore(dir); err == nil {
				err = do(s)
			}
		}
	}
	if err != nil {
		printError(a.stderr, err)
		return exitFailed
	}
	return exitOK
}

func requestError(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &fault{Msg: "there is no request " + tomlText(id), Hint: "`airlock requests` lists them; one that was approved and used is gone"}
	}
	return err
}

// approve shows a request and asks.
func approve(ctx context.Context, s *envs.Store, id string, always bool, out io.Writer, terminal func() (io.ReadWriteCloser, error)) error {
	r, err := s.Request(id)
	if err != nil {
		return requestError(id, err)
	}
	if r.State == envs.Approved {
		fmt.Fprintln(out, "That is approved already. Let the model make the same call again.")
		return nil
	}
	question := printable(r.Question) + "\n"
	if always {
		question += fmt.Sprintf("\nAnd from now on, without a question, any version of: %s\n", strings.Join(r.Names, ", "))
	}
	yes, err := confirm(terminal, question+"\nType yes: ", "run `airlock approve` in a terminal of yours; only a person can approve packages")
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("nothing was approved: the answer was not yes")
	}
	if _, err := s.Answer(ctx, id, true, always); err != nil {
		return requestError(id, err)
	}
	fmt.Fprintln(out, "Approved. When the model makes the same call again, it is installed.")
	return nil
}

// printRequests writes a paragraph a request, the last line of one that waits being what answers it.
func printRequests(w io.Writer, p paint, columns int, all []envs.Request) error {
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("No package request waits.\n")
	}
	for _, r := range all {
		fmt.Fprintf(&b, "%s  %s  %s\n", p.in(bold, r.ID), r.Created.Local().Format("2006-01-02 15:04:05"), p.in(yellow, r.State))
		// Lines go on deeper than any begins: the model's reason is the last, and where it breaks is its choice.
		for line := range strings.Lines(fold(printable(r.Question)+"\n", columns-4, 4)) {
			b.WriteString("    " + line)
		}
		if r.State == envs.Waiting {
			fmt.Fprintf(&b, "    airlock approve %s or airlock deny %[1]s answers it.\n", r.ID)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable escapes what would move a terminal's cursor, line by line.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if quoted := tomlText(line); quoted != `"`+line+`"` && strings.ContainsFunc(line, isControl) {
			lines[i] = quoted
		}
	}
	return strings.Join(lines, "\n")
}

func isControl(r rune) bool {
	return r < ' ' || r == 0x7f || slices.ContainsFunc(controls, func(c [2]rune) bool { return c[0] <= r && r <= c[1] })
}

// controls are the ranges, beyond ASCII, of what a terminal obeys: C1, and what turns the direction of text.
var controls = [][2]rune{{0x80, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}}
