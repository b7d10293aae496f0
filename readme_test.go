package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows, for each client, the block that `airlock client` prints.
func TestREADMEShowsClientBlocks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients() {
		block := c.block(c.entry("/usr/local/bin/airlock", "/home/you/project", false))
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
