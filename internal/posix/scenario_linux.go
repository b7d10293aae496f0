package main

import (
	"fmt"
	"strings"
)

// scenario is a script in two parts: the first makes what the second works on. Only the second is compared.
type scenario struct {
	name  string
	needs []string // programs
	// unchecked says why nothing is asked on the host afterwards, if so.
	unchecked  string
	setup, run string
}

// parseScenarios reads a file of scenarios. What comes before the first "=== NAME" begins the script of each;
// "---" parts the two halves. "# needs: PROGRAM..." says what has to be there, "# unchecked: REASON" that only
// output and tree are compared.
func parseScenarios(file string) ([]scenario, error) {
	parts := strings.Split("\n"+file, "\n=== ")
	prelude := strings.TrimPrefix(parts[0], "\n")
	var all []scenario
	for _, part := range parts[1:] {
		name, script, _ := strings.Cut(part, "\n")
		setup, run, ok := strings.Cut("\n"+script, "\n---\n")
		if !ok {
			return nil, fmt.Errorf("scenario %q: no line of three dashes", name)
		}
		s := scenario{name: name, setup: prelude + setup, run: prelude + run}
		for line := range strings.Lines(setup) {
			if needs, ok := strings.CutPrefix(line, "# needs: "); ok {
				s.needs = strings.Fields(needs)
			}
			if why, ok := strings.CutPrefix(line, "# unchecked: "); ok {
				s.unchecked = strings.TrimSpace(why)
			}
		}
		all = append(all, s)
	}
	return all, nil
}
