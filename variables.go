package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"airlock/internal/spelling"
)

// The variables that stand for flags. Every other AIRLOCK_* variable sets a key of the configuration.
const (
	workspaceVariable = "AIRLOCK_WORKSPACE"
	configVariable    = "AIRLOCK_CONFIG"
	logFileVariable   = "AIRLOCK_LOG_FILE"
	logLevelVariable  = "AIRLOCK_LOG_LEVEL"
)

var flagVariables = [...]string{workspaceVariable, configVariable, logFileVariable, logLevelVariable}

// variableDocuments turns the AIRLOCK_* variables of the environment into documents, in the order of
// their names. One that sets nothing known is an error: a misspelled AIRLOCK_NETWORK_MODE must not
// leave the network as it was without a word.
func variableDocuments(environ []string) ([]document, error) {
	var docs []document
	sorted := slices.Sorted(slices.Values(environ))
	for _, entry := range sorted {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "AIRLOCK_") || slices.Contains(flagVariables[:], name) {
			continue
		}
		key, ok := findVariable(name)
		if !ok {
			return nil, unknownVariable(name)
		}
		docs = append(docs, key.document(origin{Kind: fromVariable, Name: name}, value))
	}
	return docs, nil
}

func findVariable(name string) (configKey, bool) {
	for _, k := range configKeys() {
		if k.variable() == name {
			return k, true
		}
	}
	return configKey{}, false
}

func unknownVariable(name string) error {
	const prefix = "AIRLOCK_" // left out, so that it does not count as what two names have in common
	var names []string
	for _, v := range flagVariables {
		names = append(names, strings.TrimPrefix(v, prefix))
	}
	for _, k := range configKeys() {
		names = append(names, strings.TrimPrefix(k.variable(), prefix))
	}
	f := &fault{Where: shownKey([]string{name}), Msg: "sets no key of the configuration"}
	name = strings.TrimPrefix(name, prefix)
	if near := spelling.Nearest(name, names); near != "" && !strings.HasPrefix(name, near+"_") {
		f.Msg += fmt.Sprintf("; did you mean %s?", prefix+near)
	} else {
		f.Hint = sectionHint(name, names)
	}
	return f
}

// sectionHint names the variables of the section that a name is in, both without their prefix; where there is no such
// section, the form that they have.
func sectionHint(name string, names []string) string {
	var of []string
	if section, _, ok := strings.Cut(name, "_"); ok {
		for _, one := range names {
			if strings.HasPrefix(one, section+"_") {
				of = append(of, "AIRLOCK_"+one)
			}
		}
	}
	if len(of) == 0 {
		return "variables are AIRLOCK_SECTION_KEY, as in AIRLOCK_LIMITS_TIMEOUT; `airlock policy` lists the keys"
	}
	return "there are " + strings.Join(of, ", ")
}

// document writes the TOML that sets the key to a value from outside a file: texts need no quotes, and
// a list is separated by commas unless it is TOML's own "[…]".
func (k configKey) document(from origin, value string) document {
	text := value
	switch {
	case k.isText():
		text = tomlText(value)
	case k.typ.Kind() == reflect.Slice && !strings.HasPrefix(strings.TrimSpace(value), "["):
		list := []string{}
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		text = tomlValue(list)
	}
	i := strings.LastIndexByte(k.name, '.')
	return document{origin: from, text: fmt.Appendf(nil, "[%s]\n%s = %s", k.name[:i], k.name[i+1:], text), only: k.name}
}

// lookup returns the last value of a variable, as a process that calls getenv sees one of them.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
