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
	names := slices.Clone(flagVariables[:])
	for _, k := range configKeys() {
		names = append(names, k.variable())
	}
	f := &fault{Where: shownKey([]string{name}), Msg: "sets no key of the configuration"}
	if near := spelling.Nearest(name, names); near != "" {
		f.Msg += fmt.Sprintf("; did you mean %s?", near)
	}
	return f
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
