package main

import (
	"encoding"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// tomlValue writes a value of the configuration as TOML, on one line.
func tomlValue(v any) string {
	switch v := v.(type) {
	case string:
		return tomlText(v)
	case []string:
		var b strings.Builder
		for i, s := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(tomlText(s))
		}
		return "[" + b.String() + "]"
	case map[string]string:
		var b strings.Builder
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s = %s", tomlText(name), tomlText(v[name]))
		}
		if b.Len() == 0 {
			return "{}"
		}
		return "{ " + b.String() + " }"
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if err != nil {
			return tomlText(fmt.Sprint(v))
		}
		return tomlText(string(text))
	}
	return fmt.Sprint(v)
}

// tomlText writes a string as TOML. What does not print is escaped, so that nothing in it acts on a
// terminal or changes how the line reads.
func tomlText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
