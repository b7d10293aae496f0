package main

import (
	"os"
	"strings"
	"testing"
)

// The paths that the README's examples use.
const (
	readmeBinary    = "/usr/local/bin/airlock"
	readmeWorkspace = "/home/you/project"
)

// TestReadmeHasTheBlocksOfClients holds that what the README tells people to paste is what the command
// prints.
func TestReadmeHasTheBlocksOfClients(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients() {
		block := c.block(readmeBinary, readmeWorkspace, false)
		_, section, found := strings.Cut(string(readme), "<code>airlock client "+c.name+"</code>")
		section, _, _ = strings.Cut(section, "</details>")
		if !found || !strings.Contains(section, indented(block)) {
			t.Errorf("README.md lacks the block of %s:\n%s", c.name, indented(block))
		}
	}
}

// TestReadmeNamesEveryCommand holds that the README knows each subcommand but those that explain
// themselves.
func TestReadmeNamesEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands() {
		if c.name != "help" && c.name != "version" && !strings.Contains(string(readme), "airlock "+c.name) {
			t.Errorf("README.md does not name %q", "airlock "+c.name)
		}
	}
}

func indented(block string) string {
	var b strings.Builder
	for line := range strings.Lines(block) {
		b.WriteString("    " + line)
	}
	return b.String()
}
