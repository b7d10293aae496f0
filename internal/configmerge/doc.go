// Package configmerge sets a few values in a configuration file that a person keeps, and leaves everything
// else of its text as it is: comments, order, spacing, the ends of lines.
//
// The text is edited where the values are, and never written anew from what it means. What came of it is then
// read again and compared with what was to be: a text that this package does not edit rightly is an
// error, and the file is the person's to edit.
package configmerge

import (
	"fmt"
	"reflect"
)

// SyntaxError is that a text is not of the format that it should be.
type SyntaxError struct {
	Line int // from 1
	Msg  string
}

// Error implements error.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// set gives the value at a path of tables what the keys of value say, as JSON and TOML both understand it.
// It returns an error where something on the way is no table.
func set(in map[string]any, path []string, value map[string]any) error {
	for i, key := range path {
		next, there := in[key]
		if !there {
			next = map[string]any{}
			in[key] = next
		}
		table, ok := next.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is there and has no room for entries", quoted(path[:i+1]))
		}
		in = table
	}
	for key, v := range value {
		in[key] = v
	}
	return nil
}

// quoted is a path for a person.
func quoted(path []string) string {
	text := ""
	for i, key := range path {
		if i > 0 {
			text += "."
		}
		text += fmt.Sprintf("%q", key)
	}
	return text
}

// asMeant is an error unless what came of an edit is what was to be.
func asMeant(got, want any) error {
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("it is written in a way that can't be edited safely")
	}
	return nil
}
