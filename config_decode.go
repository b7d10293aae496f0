package main

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"airlock/internal/spelling"
)

// decoded is what one TOML document sets.
type decoded struct {
	config Config
	keys   []configKey    // those that the document sets, in its order
	lines  map[string]int // by the key's name; 0 where it isn't known
}

// document is TOML text with the place that it comes from.
type document struct {
	origin origin
	text   []byte
	// secret forbids to quote the text in errors: somebody hostile wrote it, and an error is read by
	// people and models who take it for airlock's word.
	secret bool
	// only names the one key that the document may set; "" is any.
	only string
}

// decode reads the document, strictly: every key must be one of the configuration's, spelled exactly,
// set once and of the right kind. The error holds one fault or more, each with its line.
func (d document) decode() (decoded, error) {
	if err := d.checkForm(); err != nil {
		return decoded{}, err
	}
	var tree map[string]any
	meta, err := toml.Decode(string(d.text), &tree)
	if err != nil {
		return decoded{}, d.parseFault(err)
	}
	out := decoded{lines: map[string]int{}}
	known := configKeys()
	var faults []error
	blamed := map[string]bool{} // keys that a fault names; what is below them is passed over
	for _, path := range meta.Keys() {
		if len(faults) == maxFaults {
			break
		}
		key, name := knownKey(known, path)
		if _, seen := out.lines[name]; seen && key != nil {
			continue // an entry of a table that is a value
		}
		fault := d.checkKey(known, tree, path)
		switch {
		case fault != nil && !blamed[fault.Key]:
			blamed[fault.Key] = true
			fault.Where = d.at(lineOf(d.text, path, meta.Keys())).String()
			faults = append(faults, fault)
		case fault == nil && key != nil:
			out.keys = append(out.keys, *key)
			out.lines[name] = lineOf(d.text, path, meta.Keys())
		}
	}
	if len(faults) > 0 {
		return decoded{}, errors.Join(faults...)
	}
	if d.only != "" && (len(out.keys) != 1 || out.keys[0].name != d.only) {
		return decoded{}, &fault{Where: d.origin.String(), Msg: "sets more than " + d.only}
	}
	// Shapes are right, so what is left to go wrong is the text of a size or a duration.
	if _, err := toml.Decode(string(d.text), &out.config); err != nil {
		return decoded{}, d.parseFault(err)
	}
	return out, nil
}

const (
	// maxDocument bounds a configuration file, in bytes; a real one has a few thousand.
	maxDocument = 1 << 20
	// maxFaults bounds how many unknown keys are reported at once. To find the line of one takes a pass
	// over the document, and a hostile one could have thousands.
	maxFaults = 10
)

// checkForm refuses what the decoder would pass over or choke on: a byte order mark, which other
// readers of the same file take for part of the first key, and documents made to take long.
func (d document) checkForm() error {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(d.text, []byte(mark)) {
			return &fault{Where: d.at(1).String(), Msg: "begins with a byte order mark", Hint: "save the file as plain UTF-8"}
		}
	}
	if len(d.text) > maxDocument {
		return &fault{Where: d.origin.String(), Msg: fmt.Sprintf("longer than %d bytes", maxDocument)}
	}
	if line := tooDeep(d.text); line > 0 {
		return &fault{Where: d.at(line).String(), Msg: fmt.Sprintf("is nested more than %d deep", maxDepth)}
	}
	return nil
}

// knownKey returns the key of the configuration that a path of the document sets, or sets an entry of.
func knownKey(known []configKey, path toml.Key) (*configKey, string) {
	for i := range known {
		depth := strings.Count(known[i].name, ".") + 1
		if len(path) >= depth && slices.Equal(strings.Split(known[i].name, "."), path[:depth]) {
			return &known[i], known[i].name
		}
	}
	return nil, ""
}

// checkKey judges one key of the document, by its path. The fault it returns has no place yet.
func (d document) checkKey(known []configKey, tree map[string]any, path toml.Key) *fault {
	var value any = tree
	for i := range path {
		table, ok := value.(map[string]any)
		if !ok {
			return &fault{Key: shownKey(path[:i+1]), Msg: "unknown key"}
		}
		value = table[path[i]]
		if key, name := knownKey(known, path[:i+1]); key != nil {
			if err := key.checkShape(value); err != nil {
				return &fault{Key: name, Msg: err.Error()}
			}
			return nil // what is deeper is part of the value, and checked with it
		}
		if !isSection(known, path[:i+1]) {
			return unknownKey(known, path[:i+1])
		}
		if _, ok := value.(map[string]any); !ok {
			name := shownKey(path[:i+1])
			return &fault{Key: name, Msg: fmt.Sprintf("is a section, written as [%s]", name)}
		}
	}
	return nil
}

// isSection reports whether keys of the configuration lie below a path.
func isSection(known []configKey, path toml.Key) bool {
	return slices.ContainsFunc(known, func(k configKey) bool {
		parts := strings.Split(k.name, ".")
		return len(parts) > len(path) && slices.Equal(parts[:len(path)], path)
	})
}

// unknownKey offers the nearest key at the same depth.
func unknownKey(known []configKey, path toml.Key) *fault {
	f := &fault{Key: shownKey(path), Msg: "unknown key"}
	last := len(path) - 1
	var siblings []string
	for _, k := range known {
		parts := strings.Split(k.name, ".")
		if len(parts) > last && slices.Equal(parts[:last], path[:last]) {
			siblings = append(siblings, parts[last])
		}
	}
	if near := spelling.Nearest(path[last], siblings); near != "" {
		f.Msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return f
}

// shownKey makes a key that need not be a known one fit for an error: printable, ASCII and short.
func shownKey(path toml.Key) string {
	const most = 64
	const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = part
		if part == "" || strings.Trim(part, bare) != "" {
			parts[i] = strconv.QuoteToASCII(part)
		}
	}
	name := strings.Join(parts, ".")
	if len(name) > most {
		name = name[:most] + "…"
	}
	return name
}

// parseFault makes a fault of an error of the decoder.
func (d document) parseFault(err error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return &fault{Where: d.origin.String(), Msg: d.quoting(err.Error(), "is not valid TOML")}
	}
	// The decoder's own line is that of what it met in the end, and with "\r\n" not always that.
	line := d.lineAt(parse.Position.Start)
	f := &fault{Where: d.at(line).String()}
	if key, known := findKey(parse.LastKey); known {
		f.Key = parse.LastKey
		if key.isText() && d.only == "" && strings.HasPrefix(parse.Message, "expected value but found") {
			f.Hint = "a text stands in quotes"
		}
	} else if parse.LastKey != "" && !d.secret {
		f.Key = shownKey(strings.Split(parse.LastKey, "."))
	}
	f.Msg = d.quoting(parse.Message, "is not valid TOML, or not a value that this key takes")
	if mayHoldSecret(strings.ToLower(f.Key)) && strings.Contains(parse.Message, `"`) { // what stands there, without the quotes that it needs
		f.Msg, f.Hint = "is not a value of TOML", "a text stands in quotes"
	}
	if m := valueFault().FindStringSubmatch(parse.Message); m != nil && d.secret {
		f.Msg = "the value " + m[1]
	}
	if open, found := unclosed(d.text, parse.Position.Start); found && d.only == "" {
		line, f.Hint = open.line, ""
		f.Where, f.Msg = d.at(line).String(), open.String()
	}
	f.Line = d.quoted(line, f.Key)
	return f
}

// quoting returns an error's message, or another one if the message may quote the document's text.
func (d document) quoting(message, instead string) string {
	if d.secret {
		return instead
	}
	return message
}

// at is the document's origin at a line. What is no file has no lines.
func (d document) at(line int) origin {
	o := d.origin
	if d.only == "" {
		o.Line = line
	}
	return o
}

// lineOf returns the line on which the value of a key begins, 0 if that can't be told. The decoder
// knows the positions of keys but shows them only in the errors that it makes itself; so it is given a
// type in which exactly this key fails to decode. all are the document's keys.
func lineOf(text []byte, path toml.Key, all []toml.Key) int {
	const deep = 4 // no key of ours is as deep, and each level is a type
	for path = path[:min(len(path), deep)]; len(path) > 0; path = path[:len(path)-1] {
		t := reflect.TypeFor[tripwire]()
		for i := len(path) - 1; i >= 0; i-- {
			fields := []reflect.StructField{{Name: "F", Type: t, Tag: tomlTag(path[i])}}
			for n, other := range otherCases(path[:i+1], all) {
				fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Other%d", n), Type: reflect.TypeFor[any](), Tag: tomlTag(other)})
			}
			t = reflect.StructOf(fields)
		}
		_, err := toml.Decode(string(text), reflect.New(t).Interface())
		var parse toml.ParseError
		if errors.As(err, &parse) && parse.Position.Line > 0 {
			return parse.Position.Line
		}
	}
	return 0
}

func tomlTag(name string) reflect.StructTag { return reflect.StructTag(fmt.Sprintf("toml:%q", name)) }

// otherCases lists the names beside the last of path that differ from it only in case. The decoder
// takes them for it unless they have a field of their own.
func otherCases(path toml.Key, all []toml.Key) []string {
	last := len(path) - 1
	var others []string
	for _, key := range all {
		if len(key) > last && slices.Equal(key[:last], path[:last]) && key[last] != path[last] &&
			strings.EqualFold(key[last], path[last]) && !slices.Contains(others, key[last]) {
			others = append(others, key[last])
		}
	}
	return others
}

// tripwire fails to decode, whatever it is given.
type tripwire struct{}

// UnmarshalTOML implements toml.Unmarshaler.
func (*tripwire) UnmarshalTOML(any) error { return errors.New("tripped") }
