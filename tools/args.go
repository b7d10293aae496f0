package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"airlock/internal/pattern"
	"airlock/internal/spelling"
)

// readArgs fills params, a pointer to a parameters struct with these fields, from the arguments of a
// call. The error names every argument that is wrong, with what it takes, so that a model can mend
// all of them at once.
//
// It is a little more generous than the schema, where models commonly stray and the meaning is
// plain: "30" and 30.0 are taken for 30, and null for an optional argument that was left out.
func readArgs(raw json.RawMessage, fields []field, params any) error {
	args := map[string]json.RawMessage{}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return fmt.Errorf("arguments: takes an object with %s", list(names(fields)))
		}
	}
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !slices.Contains(names(fields), name) {
			wrong = append(wrong, unknownArg(name, names(fields)))
		}
	}
	into := reflect.ValueOf(params).Elem()
	for _, f := range fields {
		value := args[f.name]
		if value == nil || string(value) == "null" {
			if f.need {
				wrong = append(wrong, fmt.Sprintf("%s: is missing; takes %s", f.name, f.kind))
			}
			continue
		}
		if err := f.read(value, into.Field(f.index)); err != nil {
			wrong = append(wrong, f.name+": "+err.Error())
		}
	}
	return problems(wrong)
}

// problems makes one error of many lines, nil of none.
func problems(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "; "))
}

// problemsOf makes one error of many, nil where all are nil.
func problemsOf(errs ...error) error {
	var lines []string
	for _, err := range errs {
		if err != nil {
			lines = append(lines, err.Error())
		}
	}
	return problems(lines)
}

func unknownArg(name string, known []string) string {
	shown := shownName(name)
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Sprintf("%s: unknown argument; did you mean %s?", shown, near)
	}
	return fmt.Sprintf("%s: unknown argument; there are %s", shown, list(known))
}

// shownName is a name that a model wrote, which can be anything.
func shownName(name string) string {
	if plainName().MatchString(name) {
		return name
	}
	return strconv.QuoteToASCII(firstChars(name, 64))
}

var plainName = pattern.Lazy(`^[A-Za-z0-9_.-]{1,64}$`)

// read puts a value that is not null where it belongs.
func (f field) read(value json.RawMessage, into reflect.Value) error {
	switch f.kind {
	case kindString:
		s, err := f.readString(value)
		if err == nil && len(f.one) > 0 && !slices.Contains(f.one, s) {
			err = fmt.Errorf("takes %s", oneOf(f.one))
		}
		into.SetString(s)
		return err
	case kindNumber:
		n, err := f.readNumber(value)
		into.SetInt(n)
		return err
	case kindBool:
		text := strings.Trim(string(value), `"`)
		if text != "true" && text != "false" {
			return fmt.Errorf("takes %s", f.kind)
		}
		into.SetBool(text == "true")
		return nil
	case kindStrings:
		var values []json.RawMessage
		if json.Unmarshal(value, &values) != nil {
			return fmt.Errorf("takes %s", f.kind)
		}
		ss := make([]string, len(values))
		for i, v := range values {
			s, err := f.readString(v)
			if err != nil {
				return err
			}
			ss[i] = s
		}
		into.Set(reflect.ValueOf(ss))
		return nil
	default:
		var values map[string]json.RawMessage
		if json.Unmarshal(value, &values) != nil {
			return fmt.Errorf("takes %s", f.kind)
		}
		m := make(map[string]string, len(values))
		for k, v := range values {
			s, err := f.readString(v)
			if err != nil {
				return err
			}
			m[k] = s
		}
		into.Set(reflect.ValueOf(m))
		return nil
	}
}

// readString reads one string. Nothing that is run takes a NUL: the kernel's strings end there.
func (f field) readString(value json.RawMessage) (string, error) {
	var s *string
	if json.Unmarshal(value, &s) != nil || s == nil {
		return "", fmt.Errorf("takes %s", f.kind)
	}
	if strings.ContainsRune(*s, 0) && f.name != "stdin" {
		return "", fmt.Errorf("takes no NUL character")
	}
	if len(*s) > maxArg && !f.long {
		return "", fmt.Errorf("is %s bytes long; takes at most %s", grouped(int64(len(*s))), grouped(maxArg))
	}
	return *s, nil
}

// maxArg is how long one argument or variable of a program can be: Linux takes 128 KiB for each
// (MAX_ARG_STRLEN), with its name and its NUL.
const maxArg = 128<<10 - 256

// readNumber reads a whole number in the field's range.
func (f field) readNumber(value json.RawMessage) (int64, error) {
	text := string(value)
	var s string
	if json.Unmarshal(value, &s) == nil {
		text = strings.TrimSpace(s)
	}
	// The text is bounded before it becomes a number: 1e999999999 has that many digits.
	r, ok := new(big.Rat), decimal().MatchString(text)
	if ok {
		r, ok = r.SetString(text)
	}
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, fmt.Errorf("takes %s%s", f.kind, f.bounds())
	}
	n := r.Num().Int64()
	if n < f.min || f.max > 0 && n > f.max {
		return 0, fmt.Errorf("%d is out of range; takes %s%s", n, f.kind, f.bounds())
	}
	return n, nil
}

var decimal = pattern.Lazy(`^-?[0-9]{1,18}(\.[0-9]{1,18})?([eE]\+?[0-9])?$`)

func (f field) bounds() string {
	if f.max > 0 {
		return fmt.Sprintf(" from %d to %d (%s)", f.min, f.max, f.maxKey)
	}
	return fmt.Sprintf(" from %d", f.min)
}

// oneOf words a choice: "discard" or "keep".
func oneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return strings.Join(quoted, " or ")
}

// checkNotBlank reports text that would do nothing.
func checkNotBlank(name, text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%s: is empty; takes what to run", name)
	}
	return nil
}

// checkInside reports a relative path that leads out of the workspace by its own "..". What links
// lead to, and where an absolute path lies, is for those to find out who have the filesystem.
func checkInside(name, p string) error {
	if path.IsAbs(p) {
		return nil
	}
	if clean := path.Clean(p); clean == ".." || strings.HasPrefix(clean, "../") {
		return fmt.Errorf("%s: %s leads out of the workspace; takes a path inside it", name, strconv.Quote(firstChars(p, 200)))
	}
	return nil
}

// checkEnv reports names that a shell could not use, and that exec would take for something else.
func checkEnv(env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envName().MatchString(name) {
			return fmt.Errorf("env: %s is not a name of a variable; takes letters, digits and _, not beginning with a digit",
				strconv.QuoteToASCII(firstChars(name, 64)))
		}
	}
	return nil
}

var envName = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
