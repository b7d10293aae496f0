package main

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// errByHand says that a user file is written in a way that is not understood well enough to change it.
var errByHand = errors.New("the file is written in a form that is changed by hand only")

// allowInText adds entries to network.allow in the text of a user file, sets network.mode, and leaves all
// the rest as it is, comments and order included. What comes out is decoded and compared with what was
// wanted; errByHand if it is anything else.
func allowInText(text []byte, entries []string, mode string) ([]byte, error) {
	doc := document{origin: origin{Kind: fromFile}, text: text}
	before, err := doc.decode()
	if err != nil {
		return nil, err
	}
	headed := networkHeader().Match(text)
	for _, key := range before.keys {
		if strings.HasPrefix(key.name, "network.") && !headed {
			return nil, errByHand // a section that is written as one value, or by dotted keys
		}
	}
	edited := string(text)
	if edited, err = addToArray(edited, before.lines["network.allow"], "allow", entries); err != nil {
		return nil, err
	}
	// The array's line stays where it is unless it was made, and then the mode's line moves.
	doc.text = []byte(edited)
	between, err := doc.decode()
	if err != nil {
		return nil, errByHand
	}
	if between.config.Network.Mode != mode {
		if edited, err = setString(edited, between.lines["network.mode"], "mode", mode); err != nil {
			return nil, err
		}
	}
	doc.text = []byte(edited)
	after, err := doc.decode()
	want := before.config
	want.Network.Allow = slices.Concat(want.Network.Allow, entries)
	want.Network.Mode = mode
	if err != nil || !reflect.DeepEqual(after.config, want) {
		return nil, errByHand
	}
	return []byte(edited), nil
}

// networkHeader is the line that begins the section.
var networkHeader = pattern.Lazy(`(?m)^[ \t]*\[[ \t]*network[ \t]*\][ \t]*(#.*)?\r?$`)

// addToArray puts strings at the end of the array that the key on a line has; 0 makes the key.
func addToArray(text string, line int, key string, entries []string) (string, error) {
	if line == 0 {
		return addKey(text, key+" = "+tomlValue(entries))
	}
	start, err := valueStart(text, line, key)
	if err != nil || start == len(text) || text[start] != '[' {
		return "", errByHand
	}
	last, end := arrayEnd(text, start)
	if end < 0 {
		return "", errByHand
	}
	if len(entries) == 0 {
		return text, nil
	}
	separator, comma, at := ", ", ",", last
	if text[last-1] == ',' || text[last-1] == '[' {
		comma = ""
	}
	// An array of several lines gets a line more, behind what is said of its last entry.
	if strings.Contains(text[start:end], "\n") {
		lineStart := strings.LastIndexByte(text[:last], '\n') + 1
		indent := text[lineStart : lineStart+len(text[lineStart:last])-len(strings.TrimLeft(text[lineStart:last], " \t"))]
		if lineStart <= start {
			indent = "    "
		}
		separator = "," + newline(text) + indent
		if n := strings.Index(text[last:end], newline(text)); n >= 0 {
			at += n
		}
	}
	added := make([]string, len(entries))
	for i, entry := range entries {
		added[i] = tomlText(entry)
	}
	first := strings.TrimPrefix(separator, ",")
	if text[last-1] == '[' {
		first = strings.TrimPrefix(first, " ")
	}
	return text[:last] + comma + text[last:at] + first + strings.Join(added, separator) + text[at:], nil
}

// setString replaces the value of the key on a line, which is a plain string; 0 makes the key.
func setString(text string, line int, key, value string) (string, error) {
	if line == 0 {
		return addKey(text, key+" = "+tomlText(value))
	}
	start, err := valueStart(text, line, key)
	if err != nil {
		return "", err
	}
	if start == len(text) || text[start] != '"' && text[start] != '\'' {
		return "", errByHand
	}
	length := strings.IndexByte(text[start+1:], text[start])
	if length < 0 || strings.ContainsAny(text[start+1:start+1+length], "\\\n") {
		return "", errByHand
	}
	return text[:start] + tomlText(value) + text[start+length+2:], nil
}

// addKey puts a line at the beginning of the section, which is made where it is missing.
func addKey(text, line string) (string, error) {
	nl := newline(text)
	if at := networkHeader().FindStringIndex(text); at != nil {
		end := at[1]
		if strings.HasSuffix(text[:end], "\r") {
			end--
		}
		return text[:end] + nl + line + text[end:], nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += nl
	}
	if text != "" {
		text += nl
	}
	return text + "[network]" + nl + line + nl, nil
}

// valueStart gives where the value begins of the plain key on a line, which counts from 1.
func valueStart(text string, line int, key string) (int, error) {
	at := 0
	for range line - 1 {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return 0, errByHand
		}
		at += i + 1
	}
	m := regexp.MustCompile(`^[ \t]*` + regexp.QuoteMeta(key) + `[ \t]*=[ \t]*`).FindString(text[at:])
	if m == "" {
		return 0, errByHand
	}
	return at + len(m), nil
}

// arrayEnd gives the end of what an array holds, without blanks and comments after it, and the position of
// its closing bracket; -1 if it is no array of plain strings.
func arrayEnd(text string, start int) (last, end int) {
	last = start + 1
	for i := start + 1; i < len(text); i++ {
		switch c := text[i]; c {
		case ']':
			return last, i
		case ' ', '\t', '\r', '\n':
		case ',':
			last = i + 1
		case '#':
			comment := strings.IndexByte(text[i:], '\n')
			if comment < 0 {
				return 0, -1
			}
			i += comment
		case '"', '\'':
			length := strings.IndexByte(text[i+1:], c)
			if length <= 0 || strings.ContainsAny(text[i+1:i+1+length], "\\\n") {
				return 0, -1
			}
			i += length + 1
			last = i + 1
		default:
			return 0, -1
		}
	}
	return 0, -1
}

func newline(text string) string {
	if strings.Contains(text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}
