package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
)

func policyCommand() command {
	c := command{
		name:    "policy",
		args:    "[flags] [--json]",
		summary: "the policy in force, and where each value comes from",
		help: `Prints the configuration that is in force in the workspace, as TOML, with the
place where each value was written. The output can be the beginning of a user file.

    airlock policy --workspace ~/project

` + commonHelp + `    --json             print it as JSON
`,
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		var common commonFlags
		common.register(flags)
		asJSON := flags.Bool("json", false, "")
		s, status, done := common.begin(a, c, flags, args)
		if done {
			return status
		}
		o, err := s.openHere()
		if err != nil {
			printError(a.stderr, err)
			return exitUsage
		}
		print := printPolicy
		if *asJSON {
			print = printPolicyJSON
		}
		if err := print(a.stdout, o); err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		return exitOK
	}
	return c
}

// projectState says in a word what the project's policy does.
func (o opened) projectState() string {
	switch {
	case o.policy == nil:
		return "none"
	case o.trusted:
		return "trusted"
	}
	return "narrows"
}

// printPolicy writes TOML with the origin of each value as a comment.
func printPolicy(w io.Writer, o opened) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# in %s; project policy: %s\n", tomlText(o.dir), o.projectState())
	for _, f := range o.settings.idle() {
		fmt.Fprintf(&b, "# %s\n", printable(forModel(f).Error()))
	}
	section := ""
	for _, key := range configKeys() {
		i := strings.LastIndexByte(key.name, '.')
		if key.name[:i] != section {
			section = key.name[:i]
			fmt.Fprintf(&b, "\n[%s]\n", section)
		}
		line := fmt.Sprintf("%s = %s", key.name[i+1:], tomlValue(key.get(&o.settings.Config)))
		fmt.Fprintf(&b, "%-40s # %s\n", line, o.settings.from(key))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// from says where a key's value was written.
func (s settings) from(key configKey) string {
	var places []string
	for _, o := range s.originsOf(key) {
		places = append(places, strings.Trim(tomlText(o.String()), `"`))
	}
	return strings.Join(places, " + ")
}

// originsOf never returns none: what nobody wrote is a default.
func (s settings) originsOf(key configKey) []origin {
	if from := s.origins[key.name]; len(from) > 0 {
		return from
	}
	return []origin{{Kind: fromDefault}}
}

// printPolicyJSON writes one document.
func printPolicyJSON(w io.Writer, o opened) error {
	type value struct {
		Key   string   `json:"key"`
		Value any      `json:"value"`
		From  []origin `json:"from"`
	}
	document := struct {
		Workspace     string     `json:"workspace"`
		ProjectPolicy string     `json:"project_policy"`
		Values        []value    `json:"values"`
		Notes         []idleNote `json:"notes"`
	}{o.dir, o.projectState(), nil, o.settings.notes()}
	for _, key := range configKeys() {
		v := key.get(&o.settings.Config)
		if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice && rv.IsNil() {
			v = []string{} // an empty list, not null
		}
		document.Values = append(document.Values, value{key.name, v, o.settings.originsOf(key)})
	}
	return printJSON(w, document)
}
