package main

import (
	"context"
	"flag"
	"fmt"
	"strings"

	"airlock/internal/pattern"
)

func completionCommand() command {
	c := command{
		name:    "completion",
		args:    "bash | zsh | fish",
		summary: "what makes a shell complete airlock's commands and flags",
		help: `Prints a script for the shell.

    bash:  airlock completion bash > ~/.local/share/bash-completion/completions/airlock
    zsh:   airlock completion zsh > "${fpath[1]}/_airlock"
    fish:  airlock completion fish > ~/.config/fish/completions/airlock.fish
`,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		write := map[string]func([]command) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[flags.Arg(0)]
		if write == nil || flags.NArg() != 1 {
			return usageError(a, c, "takes one shell: bash, zsh or fish")
		}
		fmt.Fprint(a.stdout, write(commands()))
		return exitOK
	}
	return c
}

// helpFlag finds a flag in the help of a command, with the word for its value.
var helpFlag = pattern.Lazy(`(?m)^    --([a-z-]+)(?: ([A-Z]+))?(?: |$)`)

// flagsOf are the flags that the help of a command describes, each with its word for a value, "" if it takes none.
func flagsOf(c command) (flags []struct{ name, value string }) {
	for _, found := range helpFlag().FindAllStringSubmatch(c.help, -1) {
		flags = append(flags, struct{ name, value string }{found[1], found[2]})
	}
	return flags
}

// wordsOf are what can stand after a command, beside flags and files.
func wordsOf(c command) []string {
	switch c.name {
	case "client":
		return clientNames()
	case "clean":
		return cleanKinds
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "envs":
		return []string{"remove", "revoke"}
	case "help":
		return commandNames()
	}
	return nil
}

// flagWords are what the value of a flag can be; nil where that is a file, or anything.
func flagWords(name string) []string {
	switch name {
	case "backend":
		return []string{"auto", "native", "bwrap", "direct"}
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	}
	return nil
}

func flagNames(c command) []string {
	var names []string
	for _, f := range flagsOf(c) {
		names = append(names, "--"+f.name)
	}
	return names
}

func bashCompletion(all []command) string {
	var b strings.Builder
	b.WriteString(`# bash completion of airlock; where it has no word, bash completes files.
_airlock() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command= words= word
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $word in
		--) return ;;
		-*) ;;
		*) command=$word && break ;;
		esac
	done
	case $prev in
	--workspace) COMPREPLY=($(compgen -d -- "$cur")) && return ;;
`)
	for _, name := range []string{"backend", "log-level"} {
		fmt.Fprintf(&b, "\t--%s) COMPREPLY=($(compgen -W %q -- \"$cur\")) && return ;;\n", name, strings.Join(flagWords(name), " "))
	}
	b.WriteString("\tesac\n\tcase $command in\n")
	fmt.Fprintf(&b, "\t'') words=%q ;;\n", strings.Join(commandNames(), " "))
	for _, c := range all {
		if words := append(wordsOf(c), flagNames(c)...); len(words) > 0 {
			fmt.Fprintf(&b, "\t%s) words=%q ;;\n", c.name, strings.Join(words, " "))
		}
	}
	b.WriteString("\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o default -F _airlock airlock\n")
	return b.String()
}

func zshCompletion(all []command) string {
	var b strings.Builder
	b.WriteString("#compdef airlock\n_airlock() {\n\tlocal -a commands\n\tcommands=(\n")
	for _, c := range all {
		fmt.Fprintf(&b, "\t\t%s\n", shellWord(c.name+":"+c.summary))
	}
	b.WriteString("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in\n")
	for _, c := range all {
		fmt.Fprintf(&b, "\t%s) _arguments", c.name)
		for _, f := range flagsOf(c) {
			spec := "--" + f.name
			switch words := flagWords(f.name); {
			case words != nil:
				spec += ":" + f.value + ":(" + strings.Join(words, " ") + ")"
			case f.name == "workspace":
				spec += ":" + f.value + ":_files -/"
			case f.value != "":
				spec += ":" + f.value + ":_files"
			}
			b.WriteString(" " + shellWord(spec))
		}
		rest := "*:file:_files"
		if words := wordsOf(c); words != nil {
			rest = "*:word:(" + strings.Join(words, " ") + ")"
		}
		fmt.Fprintf(&b, " %s ;;\n", shellWord(rest))
	}
	b.WriteString("\tesac\n}\nif [ \"$funcstack[1]\" = _airlock ]; then _airlock \"$@\"; else compdef _airlock airlock; fi\n")
	return b.String()
}

func fishCompletion(all []command) string {
	var b strings.Builder
	b.WriteString("# fish completion of airlock\n")
	for _, c := range all {
		fmt.Fprintf(&b, "complete -c airlock -n __fish_use_subcommand -f -a %s -d %s\n", c.name, shellWord(c.summary))
	}
	for _, c := range all {
		seen := shellWord("__fish_seen_subcommand_from " + c.name)
		for _, f := range flagsOf(c) {
			fmt.Fprintf(&b, "complete -c airlock -n %s -l %s", seen, f.name)
			switch words := flagWords(f.name); {
			case words != nil:
				fmt.Fprintf(&b, " -x -a %s", shellWord(strings.Join(words, " ")))
			case f.name == "workspace":
				b.WriteString(" -x -a '(__fish_complete_directories)'")
			case f.value != "":
				b.WriteString(" -r")
			}
			b.WriteByte('\n')
		}
		if words := wordsOf(c); words != nil {
			fmt.Fprintf(&b, "complete -c airlock -n %s -f -a %s\n", seen, shellWord(strings.Join(words, " ")))
		}
	}
	return b.String()
}
