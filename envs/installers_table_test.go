package envs_test

import (
	"testing"

	"airlock/envs"
	"airlock/envs/envstest"
)

// The column "read" of docs/installers.md is what reading a command sees.
func TestInstallerTable(t *testing.T) {
	spellings, harmless, err := envstest.InstallerTable("../docs/installers.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(spellings) != 71 || len(harmless) != 25 {
		t.Errorf("the table has %d spellings and %d look-alikes, want 71 and 25", len(spellings), len(harmless))
	}
	for _, row := range append(spellings, harmless...) {
		if found := envs.InstallerInShell(row.Command); (found != "") != row.Read {
			t.Errorf("%s: read as %q, the table says %t", row.Command, found, row.Read)
		}
	}
	for _, row := range spellings {
		if !row.Read && !row.StandIn {
			t.Errorf("%s: is caught by neither", row.Command)
		}
	}
	for _, row := range harmless {
		if row.Read || row.StandIn {
			t.Errorf("%s: is caught", row.Command)
		}
	}
}
