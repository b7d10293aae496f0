package configmerge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// JSON sets the keys of value in the object at path, and makes the objects on the way that are not there.
// The text may have comments and commas after the last member, as editors allow, and a byte order mark. One
// without a value gets one. The result is text itself if there is nothing to change.
func JSON(text []byte, path []string, value map[string]any) ([]byte, error) {
	before, err := parse(text)
	if err != nil {
		return nil, err
	}
	want := before.value
	if want == nil {
		want = map[string]any{}
	}
	value, err = asDecoded(value)
	if err != nil {
		return nil, err
	}
	if err := set(want, path, value); err != nil {
		return nil, err
	}
	if now, err := parse(text); err == nil && now.root != nil && asMeant(now.value, want) == nil {
		return text, nil
	}
	out := text
	if before.root == nil {
		out = slices.Concat(out, []byte(literal(nest(path, value), "", "  ", newline(text))), []byte(newline(text)))
	} else {
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if out, err = setMember(out, path, key, value); err != nil {
				return nil, err
			}
		}
	}
	after, err := parse(out)
	if err != nil {
		return nil, err
	}
	return out, asMeant(after.value, want)
}

// asDecoded is a value as it is when it is read from a text.
func asDecoded(value map[string]any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

func decode(text []byte) (map[string]any, error) {
	var value map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err
}

// nest is value at the end of a path of objects.
func nest(path []string, value any) any {
	for _, key := range slices.Backward(path) {
		value = map[string]any{key: value}
	}
	return value
}

// literal writes a value over several lines, the first of which is not indented.
func literal(value any, prefix, unit, newline string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, unit)
	_ = e.Encode(value) // it was encoded before
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", newline)
}

// setMember sets one key of the object at path. Where an object on the way is missing, it is made with the
// whole of value.
func setMember(text []byte, path []string, key string, value map[string]any) ([]byte, error) {
	doc, err := parse(text)
	if err != nil {
		return nil, err
	}
	o := doc.root
	for i, name := range path {
		m, err := o.member(name)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return o.insert(text, name, nest(path[i+1:], value), doc.unit(text)), nil
		}
		s := scanner{text: text, at: m.value}
		if o, err = s.object(len(path)); err != nil {
			return nil, err
		}
	}
	m, err := o.member(key)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return o.insert(text, key, value[key], doc.unit(text)), nil
	}
	if was, err := decode([]byte(`{"is":` + string(strict(text, m.value, m.end)) + `}`)); err == nil && asMeant(was["is"], value[key]) == nil {
		return text, nil
	}
	return splice(text, m.value, m.end, literal(value[key], lineIndent(text, m.key), doc.unit(text), newline(text))), nil
}

func splice(text []byte, from, to int, with string) []byte {
	return slices.Concat(text[:from], []byte(with), text[to:])
}

// insert adds a member at the end of an object.
func (o *object) insert(text []byte, key string, value any, unit string) []byte {
	line, indent := newline(text), lineIndent(text, o.open)+unit
	if len(o.members) > 0 && ownLine(text, o.members[0].key) {
		indent = lineIndent(text, o.members[0].key)
	}
	// After the last comment: it is about what stands before it.
	at := len(bytes.TrimRight(text[:o.close], " \t\r\n"))
	name, _ := json.Marshal(key)
	added := line + indent + string(name) + ": " + literal(value, indent, unit, line)
	if o.comma {
		added += ","
	}
	if !bytes.Contains(text[at:o.close], []byte("\n")) {
		added += line + lineIndent(text, o.open)
	}
	text = splice(text, at, at, added)
	if n := len(o.members); n > 0 && !o.comma {
		text = splice(text, o.members[n-1].end, o.members[n-1].end, ",")
	}
	return text
}

// member finds a member by its name; nil if there is none.
func (o *object) member(name string) (found *member, err error) {
	for i, m := range o.members {
		if m.name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%q is there twice in one object", name)
		}
		found = &o.members[i]
	}
	return found, nil
}

// unit is by how much the document indents.
func (d *document) unit(text []byte) string {
	if len(d.root.members) > 0 && ownLine(text, d.root.members[0].key) {
		if unit := lineIndent(text, d.root.members[0].key); unit != "" {
			return unit
		}
	}
	return "  "
}

// newline is how the text ends its lines.
func newline(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// lineIndent is the space at the beginning of the line of a byte.
func lineIndent(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// ownLine reports whether only space stands before a byte on its line.
func ownLine(text []byte, at int) bool {
	start := bytes.LastIndexByte(text[:at], '\n')
	return start >= 0 && len(bytes.Trim(text[start:at], " \t\n")) == 0
}
