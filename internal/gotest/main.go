// Command gotest runs "go test" with the arguments it is given, prints what go test prints, and ends
// with a list of every test that was skipped and why, since a skip that nobody sees is a hole in the net,
// and of those that took long. The tests have a temporary directory of their own, and what they leave
// there is a failure.
//
//	go run ./internal/gotest -race ./...
//	go run ./internal/gotest -count=1 ./sandbox -require=userns
//
// The exit status is go test's own, or 1 if only what was left behind is wrong: what may not be skipped, a
// package's own flag -require says.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	status, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	os.Exit(status)
}

// run runs go test with a temporary directory of its own, writes its report to out, and returns the exit
// status.
func run(args []string, out io.Writer) (status int, err error) {
	tmp, err := os.MkdirTemp("", "gotest-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	// What a test runs as another user has to pass through.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return 0, err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	// With the race detector a process that ends well waits for a second, so that what races may still be seen: too
	// long where tests start hundreds of processes. What GORACE says besides comes last, and holds.
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "GORACE="+strings.TrimSpace("atexit_sleep_ms=0 "+os.Getenv("GORACE")))
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	skipped, slow, err := report(events, out)
	waitErr := cmd.Wait()
	if err != nil {
		return 0, err
	}
	if _, exited := waitErr.(*exec.ExitError); waitErr != nil && !exited {
		return 0, waitErr
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		return 0, err
	}
	for _, s := range slow {
		fmt.Fprintln(out, "slow:", s)
	}
	for _, s := range skipped {
		fmt.Fprintln(out, "not run:", s)
	}
	for _, entry := range left {
		fmt.Fprintln(out, "FAIL: left in the temporary directory:", entry.Name())
	}
	status = cmd.ProcessState.ExitCode()
	if status == 0 && len(left) > 0 {
		status = 1
	}
	return status, nil
}

// event is a line of go test -json; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// slowSeconds is how long a test lasts that the report lists as slow.
const slowSeconds = 10

// childProcess ends the reason of a skip that hides nothing: what looks like a test is the body of a
// process that other tests start.
const childProcess = "is run by other tests only"

// report copies the events' text to out as go test without -v would print it: lines of packages always,
// those of a test only if it failed. Skipped tests are returned as "package Test: reason", slow ones that
// are no subtests as "package Test: 12 s".
func report(events io.Reader, out io.Writer) (skipped, slow []string, err error) {
	type test struct{ pkg, name string }
	held := map[test][]string{}
	lines := bufio.NewReader(events)
	for {
		line, readErr := lines.ReadBytes('\n')
		if readErr == io.EOF {
			return skipped, slow, nil
		}
		if readErr != nil {
			return nil, nil, readErr
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(out, "%s", line) // go itself speaks, not a test
			continue
		}
		at := test{e.Package, e.Test}
		if e.Test != "" && !strings.Contains(e.Test, "/") && e.Elapsed >= slowSeconds {
			slow = append(slow, fmt.Sprintf("%s %s: %.0f s", e.Package, e.Test, e.Elapsed))
		}
		switch {
		case e.Action == "build-output":
			fmt.Fprint(out, e.Output)
		case e.Action == "output" && e.Test == "":
			if e.Output != "PASS\n" {
				fmt.Fprint(out, e.Output)
			}
		case e.Action == "output":
			held[at] = append(held[at], e.Output)
		case e.Action == "fail" && e.Test != "":
			fmt.Fprint(out, strings.Join(held[at], ""))
			delete(held, at)
		case e.Action == "skip" && e.Test != "":
			if why := reason(held[at]); !strings.HasSuffix(why, childProcess) {
				skipped = append(skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, why))
			}
			delete(held, at)
		case e.Action == "pass":
			delete(held, at)
		case e.Action == "fail": // the package: what still runs then says nothing more
			for at, said := range held {
				if at.pkg == e.Package {
					fmt.Fprint(out, strings.Join(said, ""))
					delete(held, at)
				}
			}
		}
	}
}

// reason takes what a skipped test said out of its output, without the frame that go test adds.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}
