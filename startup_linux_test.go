package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A process that is a sandbox's init sets up little of what the server links: package sandbox has its turn before
// the packages that take long, in the order in which the linker has them initialised.
func TestInitStartsEarly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	initialised := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(self, args...)
		cmd.Args[0] = name
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, _ := cmd.CombinedOutput() // a check without its descriptors fails
		return string(out)
	}
	for _, slow := range []string{"github.com/santhosh-tekuri/jsonschema/v6", "airlock/envs", "airlock/tools"} {
		line := "\ninit " + slow + " @"
		if !strings.Contains(initialised(self, "-test.list=none"), line) {
			t.Errorf("a server does not initialise %s", slow)
		}
		if strings.Contains(initialised("airlock-check"), line) {
			t.Errorf("a sandbox's own process initialises %s", slow)
		}
	}
}
