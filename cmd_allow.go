package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"airlock/proxy"
)

func allowCommand() command {
	c := command{
		name:    "allow",
		args:    "[--config FILE] HOST...",
		summary: "let runs reach a host: add it to network.allow of the user file",
		help: `Adds hosts to network.allow in the user file, and asks for a yes on the terminal
first. A running server reads the file again before each run.

    airlock allow pypi.org files.pythonhosted.org
    airlock allow '*.example.org' github.com:22 db.example.org:5432

A host without a port is reached on ports 80 and 443; "host:*" is any port. "*.host"
is every name below host, and not host itself. To take one away, edit the file.

Flags (each with the variable that stands for it):
    --config FILE      AIRLOCK_CONFIG            the user file, in place of ~/.config/airlock/config.toml
`,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		var common commonFlags
		flags.StringVar(&common.config, "config", "", "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if flags.NArg() == 0 {
			return usageError(a, c, "no host to allow")
		}
		for _, entry := range flags.Args() {
			if _, err := proxy.ParsePattern(entry); err != nil {
				return usageError(a, c, fmt.Sprintf("%s: %v", tomlText(entry), err))
			}
		}
		s, err := common.setUp(a.environ)
		if err != nil {
			printError(a.stderr, err)
			return exitUsage
		}
		if err := allow(s, flags.Args(), a.stdout, openTerminal); err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		return exitOK
	}
	return c
}

// allow adds entries to network.allow of the user file.
func allow(s setup, entries []string, out io.Writer, terminal func() (io.ReadWriteCloser, error)) error {
	if s.user.Network.Mode == "allow" {
		fmt.Fprintln(out, "network.mode is \"allow\": every public address is reached already.")
		return nil
	}
	missing, err := uncovered(s.user.Network, entries)
	if err != nil {
		return err
	}
	if len(missing) == 0 && s.user.Network.Mode == "allowlist" {
		fmt.Fprintln(out, "network.allow covers that already.")
		return nil
	}
	text, err := s.file.read()
	if err != nil {
		return err
	}
	edited, err := allowInText(text, missing, "allowlist")
	if errors.Is(err, errByHand) {
		return &fault{
			Where: s.file.path, Msg: err.Error(),
			Hint: fmt.Sprintf("add to its [network] section: mode = \"allowlist\" and, in allow, %s", tomlValue(missing)),
		}
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Runs in all your workspaces could then reach, and send anything that they see to:\n\n")
	for _, entry := range missing {
		fmt.Fprintf(&b, "    %s\n", tomlText(entry))
	}
	if s.user.Network.Mode == "deny" {
		for _, entry := range s.user.Network.Allow {
			fmt.Fprintf(&b, "    %s, which network.allow has already\n", tomlText(entry))
		}
	}
	for _, reason := range stillRefused(s.user.Network, missing) {
		fmt.Fprintf(&b, "\nThis alone does not open it: %s.\n", reason)
	}
	if s.user.Network.Mode == "deny" {
		fmt.Fprintf(&b, "\nUntil now they reach nothing: network.mode becomes \"allowlist\".\n")
	}
	fmt.Fprintf(&b, "\nWrite this to %s? Type yes: ", tomlText(s.file.path))
	yes, err := confirm(terminal, b.String(), "run `airlock allow` in a terminal of yours; only a person can open the network")
	if err != nil {
		return err
	}
	if !yes {
		return errors.New("nothing was changed: the answer was not yes")
	}
	if err := replaceFile(s.file.path, edited); err != nil {
		return fmt.Errorf("the user file can't be written: %w", err)
	}
	fmt.Fprintf(out, "Written to %s. The next run of a server that is running knows it.\n", tomlText(s.file.path))
	return nil
}

// loopbackMend is for an entry that means a server on this machine.
const loopbackMend = `in a run that is the run itself, and never this machine. A run reaches a server of this machine by a name of its own: ` +
	`set network.resolve = {"here.test" = "127.0.0.1"} and network.private = ["127.0.0.1/32"], and allow "here.test:PORT"`

// stillRefused says what is refused of the addresses among the entries once they are in network.allow, and which of them
// don't mean what they seem to.
func stillRefused(c proxy.Config, entries []string) (reasons []string) {
	c.Mode, c.Allow = "allowlist", append(slices.Clip(c.Allow), entries...)
	policy, err := proxy.NewPolicy(c)
	if err != nil {
		return nil // it is said where the file is read
	}
	for _, entry := range entries {
		host, port, err := net.SplitHostPort(strings.TrimSuffix(entry, ":*"))
		if err != nil {
			host, port = strings.Trim(strings.TrimSuffix(entry, ":*"), "[]"), "443"
		}
		addr, err := netip.ParseAddr(host)
		if err == nil && addr.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost") {
			reasons = append(reasons, host+": "+loopbackMend)
			continue
		}
		if err != nil {
			continue // a name is judged by what it resolves to then
		}
		number, _ := strconv.Atoi(port) // of a pattern, which was parsed
		if v := policy.Decide(addr.String(), number); !v.Allow {
			reasons = append(reasons, v.Reason)
		}
	}
	return reasons
}

// uncovered gives the entries that network.allow does not cover yet. One that network.deny covers is an
// error: it would change nothing.
func uncovered(c proxy.Config, entries []string) ([]string, error) {
	covered := func(list []string, p proxy.Pattern) bool {
		for _, entry := range list {
			if other, err := proxy.ParsePattern(entry); err == nil && other.Covers(p) {
				return true
			}
		}
		return false
	}
	var missing []string
	for _, entry := range entries {
		p, err := proxy.ParsePattern(entry)
		if err != nil {
			return nil, err
		}
		if covered(c.Deny, p) {
			return nil, &fault{Key: "network.deny", Msg: "refuses " + tomlText(entry) + ", and wins over network.allow", Hint: "take it off network.deny first"}
		}
		if !covered(c.Allow, p) && !covered(missing, p) {
			missing = append(missing, p.String())
		}
	}
	return missing, nil
}

// replaceFile gives a file new content at once, so that nobody reads half of it. A link to it stays one.
func replaceFile(path string, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone by then, if all went well
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
