package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"airlock/internal/spelling"
)

func clientCommand() command {
	c := command{
		name:    "client",
		args:    "[--workspace DIR] NAME",
		summary: "the ready configuration block for a client",
		help: `Prints the block that makes a client start airlock; standard error says which file it
belongs into. NAME is one of ` + strings.Join(clientNames(), ", ") + `.

    airlock client claude-code

Flags:
    --workspace DIR    the directory to work in, for clients that do not say it
                       themselves; without it the working directory is written
`,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		workspace := flags.String("workspace", "", "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if flags.NArg() != 1 {
			return usageError(a, c, "takes the name of one client: "+strings.Join(clientNames(), ", "))
		}
		name := flags.Arg(0)
		about, ok := findClient(name)
		if !ok {
			msg := "unknown client " + tomlText(name)
			if near := spelling.Nearest(name, clientNames()); near != "" {
				msg += fmt.Sprintf("; did you mean %q?", near)
			}
			return usageError(a, c, msg+"; there are "+strings.Join(clientNames(), ", "))
		}
		binary, err := os.Executable()
		if err == nil {
			binary, err = filepath.EvalSymlinks(binary)
		}
		if err != nil {
			printError(a.stderr, fmt.Errorf("the path of this program: %w", err))
			return exitFailed
		}
		dir, err := filepath.Abs(*workspace)
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		if !utf8.ValidString(dir + binary) {
			printError(a.stderr, fmt.Errorf("the path %s is not UTF-8, and a client's configuration can hold nothing else", tomlText(dir)))
			return exitFailed
		}
		for _, line := range about.notes(binary) {
			fmt.Fprintln(a.stderr, line)
		}
		fmt.Fprint(a.stdout, about.block(binary, dir, *workspace != ""))
		return exitOK
	}
	return c
}

// client is a program that starts MCP servers.
type client struct {
	name string
	file string // where the block belongs
	note string // what else to know; "" if nothing

	// The workspace is not named where the client says it itself, by roots or by the directory that it
	// starts servers in. variable is the client's own word for the project, where it has one.
	tellsWorkspace bool
	variable       string

	write func(serverEntry) string
}

// serverEntry is what a block says.
type serverEntry struct {
	command string
	args    []string
}

// clients lists them by what their documentation says of servers on standard input and output.
func clients() []client {
	return []client{
		{
			name: "claude-code", file: ".mcp.json in the project, or run: claude mcp add --scope user airlock -- COMMAND serve",
			tellsWorkspace: true,
			write:          jsonBlock("mcpServers", map[string]any{"type": "stdio"}),
		},
		{
			name: "claude-desktop", file: "claude_desktop_config.json (Settings, Developer, Edit Config)",
			note:  "Quit the application and start it again.",
			write: jsonBlock("mcpServers", nil),
		},
		{
			name: "cursor", file: "~/.cursor/mcp.json, or .cursor/mcp.json in the project",
			variable: "${workspaceFolder}",
			write:    jsonBlock("mcpServers", nil),
		},
		{
			name: "vscode", file: ".vscode/mcp.json in the project, or the user's mcp.json (MCP: Open User Configuration)",
			variable: "${workspaceFolder}",
			write:    jsonBlock("servers", map[string]any{"type": "stdio"}),
		},
		{
			name: "codex", file: "~/.codex/config.toml",
			note:           "tool_timeout_sec, in seconds, is above limits.max_timeout: otherwise the client gives up first.",
			tellsWorkspace: true,
			write:          codexBlock,
		},
		{
			name: "gemini", file: "~/.gemini/settings.json, or .gemini/settings.json in the project",
			note:           "timeout, in milliseconds, is above limits.max_timeout: otherwise the client gives up first.",
			tellsWorkspace: true,
			write:          jsonBlock("mcpServers", map[string]any{"timeout": clientTimeout * 1000}),
		},
		{
			name: "zed", file: ".zed/settings.json in the project, or the user's settings.json (zed: open settings)",
			write: jsonBlock("context_servers", nil),
		},
	}
}

// clientTimeout is how long a client is told to wait for a call, in seconds: longer than the default of
// limits.max_timeout, one hour.
const clientTimeout = 3660

func clientNames() []string {
	var names []string
	for _, c := range clients() {
		names = append(names, c.name)
	}
	return names
}

func findClient(name string) (client, bool) {
	for _, c := range clients() {
		if c.name == name {
			return c, true
		}
	}
	return client{}, false
}

// notes say where the block belongs, and what else to know.
func (c client) notes(binary string) []string {
	notes := []string{"# for " + strings.ReplaceAll(c.file, "COMMAND", shellWord(binary))}
	if c.note != "" {
		notes = append(notes, "# "+c.note)
	}
	return notes
}

// block is the configuration alone, so that it can be redirected into a file. insist writes dir even
// where the client would say the workspace itself.
func (c client) block(binary, dir string, insist bool) string {
	entry := serverEntry{command: binary, args: []string{"serve"}}
	switch {
	case insist || !c.tellsWorkspace && c.variable == "":
		entry.args = append(entry.args, "--workspace", dir)
	case c.variable != "":
		entry.args = append(entry.args, "--workspace", c.variable)
	}
	return c.write(entry)
}

// jsonBlock writes the shape that most clients share, under the name that each has for it.
func jsonBlock(top string, more map[string]any) func(serverEntry) string {
	return func(e serverEntry) string {
		server := map[string]any{"command": e.command, "args": e.args}
		for k, v := range more {
			server[k] = v
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		_ = enc.Encode(map[string]any{top: map[string]any{"airlock": server}}) // strings and numbers always encode
		return b.String()
	}
}

func codexBlock(e serverEntry) string {
	return fmt.Sprintf("[mcp_servers.airlock]\ncommand = %s\nargs = %s\ntool_timeout_sec = %d\n",
		tomlText(e.command), tomlValue(e.args), clientTimeout)
}
