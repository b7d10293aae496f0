package main

import (
	"fmt"
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

// A heap in huge pages is of use to what comes after it: the packages whose tables take long, and an init.
func TestHugeHeapIsEarly(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.list=none")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	at := func(pkg string) int {
		i := strings.Index(string(out), "\ninit "+pkg+" @")
		if i < 0 {
			t.Fatalf("%s is not initialised", pkg)
		}
		return i
	}
	early := at("airlock/internal/hugeheap")
	for _, later := range []string{"encoding/json", "airlock/sandbox", "github.com/santhosh-tekuri/jsonschema/v6"} {
		if at(later) < early {
			t.Errorf("%s is initialised earlier", later)
		}
	}
}

// Packages of ours set next to nothing up before main: each start of the binary pays for it, and each run is one. What
// is counted is what they allocate, since times are the machine's.
func TestPackagesSetUpLittle(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "version")
	cmd.Args[0] = "airlock" // as which the binary of the tests is that, with what tests compile at once left out
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const most = 32 << 10
	seen := 0
	for line := range strings.Lines(string(out)) {
		var at, clock float64
		var bytes int
		pkg, rest, _ := strings.Cut(strings.TrimPrefix(line, "init "), " ")
		if n, _ := fmt.Sscanf(rest, "@%f ms, %f ms clock, %d bytes", &at, &clock, &bytes); n != 3 || !strings.HasPrefix(pkg, module+"/") {
			continue
		}
		if seen++; bytes > most {
			t.Errorf("%s allocates %d bytes before main, more than %d", pkg, bytes, most)
		}
	}
	if seen == 0 {
		t.Errorf("no package of ours in %s", out)
	}
}
