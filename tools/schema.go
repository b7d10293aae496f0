package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// field is one argument of a tool, read from the tags of the tool's parameters struct, which are the
// only place where arguments are described. The schema that a client sees and the check that its
// calls get are both made of fields, so they cannot disagree.
//
// The tags are:
//
//	json:"name"        the name of the argument
//	need:"true"        it must be there
//	one:"a|b"          the values that it takes
//	min:"1"            the smallest number that it takes
//	long:"true"        it may be longer than one argument or variable of a program can be
//	doc:"…"            what it is, for the model
type field struct {
	name  string
	need  bool
	one   []string
	min   int64
	doc   string
	index int
	kind  fieldKind
	long  bool

	// max is the largest number that it takes, 0 for none, and maxKey the key of the configuration
	// that says so. Neither is a tag: they are not the same everywhere.
	max    int64
	maxKey string
}

// fieldKind is what a field takes, worded as its error says it.
type fieldKind string

const (
	kindString  fieldKind = "a string"
	kindNumber  fieldKind = "a whole number"
	kindStrings fieldKind = "an array of strings"
	kindEnv     fieldKind = "an object whose values are strings"
	kindBool    fieldKind = "true or false"
)

// fieldsOf reads the tags of a parameters struct. A struct that it cannot read is a bug of ours.
func fieldsOf(params any) []field {
	t := reflect.TypeOf(params)
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		f := field{name: sf.Tag.Get("json"), need: sf.Tag.Get("need") == "true", long: sf.Tag.Get("long") == "true", doc: sf.Tag.Get("doc"), index: i}
		if s := sf.Tag.Get("one"); s != "" {
			f.one = strings.Split(s, "|")
		}
		if s := sf.Tag.Get("min"); s != "" {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				panic(fmt.Sprintf("bug: %s.%s: min: %v", t, sf.Name, err))
			}
			f.min = n
		}
		switch sf.Type {
		case reflect.TypeFor[string]():
			f.kind = kindString
		case reflect.TypeFor[int64]():
			f.kind = kindNumber
		case reflect.TypeFor[bool]():
			f.kind = kindBool
		case reflect.TypeFor[[]string]():
			f.kind = kindStrings
		case reflect.TypeFor[map[string]string]():
			f.kind = kindEnv
		default:
			panic(fmt.Sprintf("bug: %s.%s: no argument can be a %s", t, sf.Name, sf.Type))
		}
		fields = append(fields, f)
	}
	return fields
}

// names gives the names of the fields, in their order.
func names(fields []field) []string {
	var ns []string
	for _, f := range fields {
		ns = append(ns, f.name)
	}
	return ns
}

// inputSchema gives the JSON schema of an object with these fields and no others.
func inputSchema(fields []field) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", quoteJSON(f.name), f.schema())
		if f.need {
			required = append(required, f.name)
		}
	}
	b.WriteByte('}')
	if len(required) > 0 {
		fmt.Fprintf(&b, `,"required":%s`, quoteJSON(required))
	}
	b.WriteString(`,"additionalProperties":false}`)
	return json.RawMessage(b.String())
}

// schema gives the JSON schema of the field's value.
func (f field) schema() []byte {
	type schema struct {
		Type        string   `json:"type"`
		Description string   `json:"description,omitempty"`
		Enum        []string `json:"enum,omitempty"`
		Minimum     *int64   `json:"minimum,omitempty"`
		Maximum     *int64   `json:"maximum,omitempty"`
		Items       *schema  `json:"items,omitempty"`
		Values      *schema  `json:"additionalProperties,omitempty"`
	}
	text := &schema{Type: "string"}
	s := schema{Description: f.doc, Enum: f.one}
	switch f.kind {
	case kindString:
		s.Type = "string"
	case kindNumber:
		s.Type, s.Minimum = "integer", &f.min
		if f.max > 0 {
			s.Maximum = &f.max
		}
	case kindBool:
		s.Type = "boolean"
	case kindStrings:
		s.Type, s.Items = "array", text
	case kindEnv:
		s.Type, s.Values = "object", text
	}
	return quoteJSON(s)
}

// quoteJSON encodes a value that always can be.
func quoteJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return b
}
