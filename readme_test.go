package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The README shows, for each client, the block that `airlock client` prints.
func TestREADMEShowsClientBlocks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients() {
		block := c.block(c.entry("/usr/local/bin/airlock", "/home/you/project", false, time.Hour))
		indented := "    " + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n    ") + "\n"
		if !strings.Contains(string(text), "<code>airlock client "+c.name+"</code>") || !strings.Contains(string(text), indented) {
			t.Errorf("README.md lacks the block of %s:\n%s", c.name, indented)
		}
	}
}

// Every command is told of in the README.
func TestREADMENamesCommands(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		if !strings.Contains(string(text), "airlock "+c.name) && c.name != "help" && c.name != "version" && c.name != "serve" {
			t.Errorf("README.md does not name `airlock %s`", c.name)
		}
	}
}

// What the public conformance suite may find wanting is told, with whose fault it is.
func TestCompatibilityNamesFailures(t *testing.T) {
	text, err := os.ReadFile("docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	expected, err := os.ReadFile("testdata/clients/conformance/expected.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, clients, _ := strings.Cut(string(text), "\n## Clients\n")
	clients, _, _ = strings.Cut(clients, "\n## ")
	named := 0
	for line := range strings.Lines(string(expected)) {
		scenario, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			continue
		}
		if named++; !strings.Contains(clients, "| `"+scenario+"` |") {
			t.Errorf("docs/compatibility.md does not say why %s fails", scenario)
		}
	}
	if told := strings.Count(clients, "\n| `"); told != named {
		t.Errorf("docs/compatibility.md names %d failures, the suite is to meet %d", told, named)
	}
}

// readmeSettings are the blocks of the README that are configurations of airlock, as somebody copies them.
func readmeSettings(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := slices.DeleteFunc(indentedBlocks(string(text)), func(block string) bool {
		return !strings.HasPrefix(block, "[") || strings.HasPrefix(block, "[mcp_servers.") // that one is a client's
	})
	if len(blocks) < 3 {
		t.Fatalf("the README has %d blocks that begin with a section", len(blocks))
	}
	return blocks
}

// indentedBlocks gives what Markdown text has indented by four, without that. Empty lines in a block belong to it.
func indentedBlocks(text string) (blocks []string) {
	empty, inside := "", false
	for line := range strings.Lines(text) {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && inside:
			blocks[len(blocks)-1] += empty + code
			empty = ""
		case indented:
			blocks = append(blocks, code)
			empty, inside = "", true
		case line == "\n":
			empty += line
		default:
			inside = false
		}
	}
	return blocks
}

// What the README shows as a configuration is one, and has an effect as it stands.
func TestREADMESettings(t *testing.T) {
	for _, block := range readmeSettings(t) {
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := userSettings(configFile{path: file, named: true}, []string{"HOME=" + t.TempDir()}, nil)
		if err != nil {
			t.Errorf("%v, of\n%s", err, block)
			continue
		}
		for _, f := range s.idle() {
			t.Errorf("%v, of\n%s", f, block)
		}
	}
}
