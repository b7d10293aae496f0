package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"airlock/internal/configmerge"
)

// client is a program that starts MCP servers.
type client struct {
	name string
	file string // where the block belongs
	note string // what else to know; "" if nothing

	// The workspace is not named where the client says it itself, by roots or by the directory that it
	// starts servers in. variable is the client's own word for the project, where it has one.
	tellsWorkspace bool
	variable       string

	toml    bool           // the file is TOML, and JSON otherwise
	servers string         // the table in it that has the servers by name
	more    map[string]any // what the entry of a server has beside its command and arguments
	timeout string         // the key by which it is told how long to wait for a call, in units; "" if there is none
	unit    time.Duration

	// own is the client's file that --write takes, relative to the workspace; or the path of the user's, which
	// perUser finds.
	own     string
	perUser func(places, []string) string
}

// clients lists them by what their documentation says of servers on standard input and output.
func clients() []client {
	return []client{
		{
			name: "claude-code", file: ".mcp.json in the project, or run: claude mcp add --scope user airlock -- COMMAND serve",
			tellsWorkspace: true,
			servers:        "mcpServers", more: map[string]any{"type": "stdio"},
			own: ".mcp.json",
		},
		{
			name: "claude-desktop", file: "claude_desktop_config.json (Settings, Developer, Edit Config)",
			note:    "Quit the application and start it again.",
			servers: "mcpServers",
			perUser: claudeDesktopFile,
		},
		{
			name: "cursor", file: "~/.cursor/mcp.json, or .cursor/mcp.json in the project",
			variable: "${workspaceFolder}",
			servers:  "mcpServers",
			perUser:  inHome("", ".cursor", "mcp.json"),
		},
		{
			name: "vscode", file: ".vscode/mcp.json in the project, or the user's mcp.json (MCP: Open User Configuration)",
			variable: "${workspaceFolder}",
			servers:  "servers", more: map[string]any{"type": "stdio"},
			own: ".vscode/mcp.json",
		},
		{
			name: "codex", file: "~/.codex/config.toml",
			note:           "tool_timeout_sec, in seconds, is above limits.max_timeout: otherwise the client gives up first.",
			tellsWorkspace: true,
			toml:           true, servers: "mcp_servers", timeout: "tool_timeout_sec", unit: time.Second,
			perUser: inHome("CODEX_HOME", ".codex", "config.toml"),
		},
		{
			name: "gemini", file: "~/.gemini/settings.json, or .gemini/settings.json in the project",
			note:           "timeout, in milliseconds, is above limits.max_timeout: otherwise the client gives up first.",
			tellsWorkspace: true,
			servers:        "mcpServers", timeout: "timeout", unit: time.Millisecond,
			perUser: inHome("", ".gemini", "settings.json"),
		},
		{
			name: "zed", file: ".zed/settings.json in the project, or the user's settings.json (zed: open settings)",
			servers: "context_servers",
			own:     ".zed/settings.json",
		},
		{
			name: "mcp.json", file: "mcp.json, or whatever your client calls the file that has its servers under mcpServers",
			servers: "mcpServers",
			own:     "mcp.json",
		},
	}
}

// clientSlack is how much longer than limits.max_timeout a client is told to wait for a call.
const clientSlack = time.Minute

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

// entry is what a file says of airlock, under its name. insist writes dir even where the client would say
// the workspace itself. longest is limits.max_timeout.
func (c client) entry(binary, dir string, insist bool, longest time.Duration) map[string]any {
	args := []any{"serve"}
	switch {
	case c.names(insist):
		args = append(args, "--workspace", dir)
	case c.variable != "":
		args = append(args, "--workspace", c.variable)
	}
	entry := map[string]any{"command": binary, "args": args}
	for k, v := range c.more {
		entry[k] = v
	}
	if c.timeout != "" {
		entry[c.timeout] = int64((longest + clientSlack) / c.unit)
	}
	return entry
}

// names reports whether the entry has the workspace's own path.
func (c client) names(insist bool) bool { return insist || !c.tellsWorkspace && c.variable == "" }

// path is where the entry is in the file.
func (c client) path() []string { return []string{c.servers, "airlock"} }

// block is the configuration alone, so that it can be redirected into a file.
func (c client) block(entry map[string]any) string {
	if c.toml {
		block := "[" + strings.Join(c.path(), ".") + "]\n"
		for _, l := range tomlLiterals(entry) {
			block += l.Key + " = " + l.Value + "\n"
		}
		return block
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]any{c.servers: map[string]any{"airlock": entry}}) // strings and numbers always encode
	return b.String()
}

// tomlLiterals is an entry as TOML has it.
func tomlLiterals(entry map[string]any) []configmerge.Literal {
	var args []string
	for _, arg := range entry["args"].([]any) {
		args = append(args, arg.(string))
	}
	return []configmerge.Literal{
		{Key: "command", Value: tomlText(entry["command"].(string))},
		{Key: "args", Value: tomlValue(args)},
		{Key: "tool_timeout_sec", Value: fmt.Sprint(entry["tool_timeout_sec"])},
	}
}

// inHome is a file in the home directory, or in the directory that a variable names.
func inHome(variable, dir, name string) func(places, []string) string {
	return func(p places, environ []string) string {
		if at := lookup(environ, variable); variable != "" && filepath.IsAbs(at) {
			return filepath.Join(at, name)
		}
		return filepath.Join(p.home, dir, name)
	}
}

func claudeDesktopFile(p places, _ []string) string {
	dir := filepath.Dir(p.config)
	if runtime.GOOS == "darwin" {
		dir = filepath.Join(p.home, "Library", "Application Support")
	}
	return filepath.Join(dir, "Claude", "claude_desktop_config.json")
}
