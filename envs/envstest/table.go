package envstest

import (
	"errors"
	"os"
	"regexp"
	"strings"
)

// InstallerRow is a row of the table of commands in docs/installers.md.
type InstallerRow struct {
	Command string
	// Read and StandIn say whether the command is refused when it is read, and by what is on a run's PATH.
	Read, StandIn bool
}

var installerRow = regexp.MustCompile("^\\| `` (.+) `` \\| (yes|no) \\| (yes|no) \\|$")

// InstallerTable reads the table from a file: the commands that install, and those that only look like it.
func InstallerTable(file string) (spellings, harmless []InstallerRow, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	first, second, ok := strings.Cut(string(text), "## What only looks like it")
	if !ok {
		return nil, nil, errors.New("the table has no second part")
	}
	return installerRows(first), installerRows(second), nil
}

func installerRows(text string) []InstallerRow {
	var rows []InstallerRow
	for line := range strings.Lines(text) {
		if m := installerRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			command := strings.NewReplacer(`\|`, "|", "⏎", "\n").Replace(m[1])
			rows = append(rows, InstallerRow{command, m[2] == "yes", m[3] == "yes"})
		}
	}
	return rows
}
