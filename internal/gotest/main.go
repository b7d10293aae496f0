// Command gotest runs "go test" with the arguments it is given, prints what go test prints, and ends
// with a list of every test that was skipped and why: a skip that nobody sees is a hole in the net.
//
//	go run ./internal/gotest -race ./...
//	go run ./internal/gotest -count=1 ./sandbox -require=userns
//
// The exit status is go test's own: what may not be skipped, a package's own flag -require says.
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
	status, skipped, err := run(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	for _, s := range skipped {
		fmt.Println("not run:", s)
	}
	os.Exit(status)
}

// run runs go test and copies its report to out. It returns go test's exit status and the skipped tests.
func run(args []string, out io.Writer) (status int, skipped []string, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	skipped, err = report(events, out)
	waitErr := cmd.Wait()
	if err != nil {
		return 0, nil, err
	}
	if _, exited := waitErr.(*exec.ExitError); waitErr != nil && !exited {
		return 0, nil, waitErr
	}
	return cmd.ProcessState.ExitCode(), skipped, nil
}

// event is a line of go test -json; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// childProcess ends the reason of a skip that hides nothing: what looks like a test is the body of a
// process that other tests start.
const childProcess = "is run by other tests only"

// report copies the events' text to out as go test without -v would print it: lines of packages always,
// those of a test only if it failed. Skipped tests are returned as "package Test: reason".
func report(events io.Reader, out io.Writer) (skipped []string, err error) {
	type test struct{ pkg, name string }
	held := map[test][]string{}
	lines := bufio.NewReader(events)
	for {
		line, readErr := lines.ReadBytes('\n')
		if readErr == io.EOF {
			return skipped, nil
		}
		if readErr != nil {
			return nil, readErr
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(out, "%s", line) // go itself speaks, not a test
			continue
		}
		at := test{e.Package, e.Test}
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
