package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"airlock/internal/spelling"
)

func clientCommand() command {
	c := command{
		name:    "client",
		args:    "[flags] NAME",
		summary: "the configuration that makes a client start airlock",
		help: `Prints the block that makes a client start airlock; standard error says which file it
belongs into. NAME is one of ` + strings.Join(clientNames(), ", ") + `.
With --write the block is put into that file. All else that is in it stays as it is,
comments too, and beside it there is the file as it was, as FILE.bak.

    airlock client claude-code
    airlock client --write codex

Flags:
    --workspace DIR    the directory to work in, for clients that do not say it
                       themselves; without it the working directory is written
    --write            put the block into the client's file: of the workspace for
                       claude-code, vscode, zed and mcp.json, and yours for the others
    --file FILE        with --write: into this file instead
`,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		workspace := flags.String("workspace", "", "")
		write := flags.Bool("write", false, "")
		file := flags.String("file", "", "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if flags.NArg() != 1 {
			return usageError(a, c, "takes the name of one client: "+strings.Join(clientNames(), ", "))
		}
		if *file != "" && !*write {
			return usageError(a, c, "--file goes with --write")
		}
		name := flags.Arg(0)
		about, ok := findClient(name)
		if !ok {
			msg := "unknown client " + tomlText(name)
			also := "; there"
			if near := spelling.Nearest(name, clientNames()); near != "" {
				also = fmt.Sprintf("; did you mean %q? There", near)
			}
			return usageError(a, c, msg+also+" are "+strings.Join(clientNames(), ", "))
		}
		binary, err := os.Executable()
		if err == nil {
			binary, err = filepath.EvalSymlinks(binary)
		}
		if err != nil {
			printError(a.stderr, fmt.Errorf("the path of this program: %w", err))
			return exitFailed
		}
		dir, err := filepath.Abs(a.path(*workspace))
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		if !utf8.ValidString(dir + binary) {
			printError(a.stderr, fmt.Errorf("the path %s is not UTF-8, and a client's configuration can hold nothing else", tomlText(dir)))
			return exitFailed
		}
		s, err := (&commonFlags{}).setUp(a.environ)
		if err == nil && about.names(*workspace != "") {
			_, err = s.rules.open(dir) // a server that refuses it is all that a client would show
		}
		if err != nil {
			printError(a.stderr, err)
			return exitUsage
		}
		entry := about.entry(binary, dir, *workspace != "", time.Duration(s.user.Limits.MaxTimeout))
		if *write {
			if err := about.write(a, entry, dir, a.path(*file)); err != nil {
				printError(a.stderr, err)
				return exitFailed
			}
			return exitOK
		}
		for _, line := range about.notes(binary) {
			fmt.Fprintln(a.stderr, line)
		}
		fmt.Fprint(a.stdout, about.block(entry))
		return exitOK
	}
	return c
}
