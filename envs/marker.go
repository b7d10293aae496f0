package envs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// Marker is the condition of a requirement on the interpreter, as in python_version < "3.12".
type Marker struct {
	text string
	eval func(env map[string]string) bool
}

// Holds evaluates the marker. env is what the interpreter says of itself, with "extra" set where the
// requirement is one of an extra's.
func (m Marker) Holds(env map[string]string) bool { return m.eval == nil || m.eval(env) }

// String gives the marker in canonical form.
func (m Marker) String() string { return m.text }

// markerVariables are the names that PEP 508 gives a meaning.
var markerVariables = []string{
	"os_name", "sys_platform", "platform_machine", "platform_python_implementation", "platform_release", "platform_system",
	"platform_version", "python_version", "python_full_version", "implementation_name", "implementation_version", "extra",
}

var markerToken = pattern.Lazy(`^\s*(?:("[^"\\]*"|'[^'\\]*')|(<=|>=|==|!=|~=|<|>)|([()])|([A-Za-z_][A-Za-z0-9_.]*))`)

// parseMarker reads a marker; "" holds everywhere.
func parseMarker(s string) (Marker, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return Marker{}, nil
	}
	if len(s) > 2048 {
		return Marker{}, errors.New("the marker is too long")
	}
	p := markerParser{}
	for rest := s; strings.TrimSpace(rest) != ""; {
		m := markerToken().FindStringSubmatch(rest)
		if m == nil {
			return Marker{}, fmt.Errorf("the marker can't be read at %q", clip(strings.TrimSpace(rest), 40))
		}
		p.tokens = append(p.tokens, strings.TrimSpace(m[0]))
		rest = rest[len(m[0]):]
	}
	eval, err := p.or(0)
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("the marker can't be read at %q", clip(p.tokens[0], 40))
	}
	if err != nil {
		return Marker{}, err
	}
	return Marker{text: s, eval: eval}, nil
}

type markerParser struct{ tokens []string }

type condition = func(env map[string]string) bool

func (p *markerParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *markerParser) next() string {
	t := p.peek()
	if t != "" {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *markerParser) or(depth int) (condition, error) {
	return p.joined("or", depth, p.and, func(a, b condition) condition {
		return func(env map[string]string) bool { return a(env) || b(env) }
	})
}

func (p *markerParser) and(depth int) (condition, error) {
	return p.joined("and", depth, p.one, func(a, b condition) condition {
		return func(env map[string]string) bool { return a(env) && b(env) }
	})
}

func (p *markerParser) joined(word string, depth int, part func(int) (condition, error), join func(a, b condition) condition) (condition, error) {
	left, err := part(depth)
	for err == nil && p.peek() == word {
		p.next()
		var right condition
		if right, err = part(depth); err == nil {
			left = join(left, right)
		}
	}
	return left, err
}

func (p *markerParser) one(depth int) (condition, error) {
	if depth > 50 {
		return nil, errors.New("the marker is too deep")
	}
	if p.peek() == "(" {
		p.next()
		inner, err := p.or(depth + 1)
		if err == nil && p.next() != ")" {
			err = errors.New("the marker lacks a )")
		}
		return inner, err
	}
	left, err := p.value()
	if err != nil {
		return nil, err
	}
	op := p.next()
	if op == "not" {
		op += " " + p.next()
	}
	if !slices.Contains([]string{"<=", ">=", "==", "!=", "~=", "<", ">", "in", "not in"}, op) {
		return nil, fmt.Errorf("the marker has no comparison at %q", clip(op, 40))
	}
	right, err := p.value()
	if err != nil {
		return nil, err
	}
	return func(env map[string]string) bool { return compare(left, op, right, env) }, nil
}

// operand is a literal or the name of a variable.
type operand struct {
	variable string
	text     string
}

func (o operand) in(env map[string]string) string {
	if o.variable == "" {
		return o.text
	}
	return env[o.variable]
}

func (p *markerParser) value() (operand, error) {
	t := p.next()
	if t == "" {
		return operand{}, errors.New("the marker ends too early")
	}
	if t[0] == '"' || t[0] == '\'' {
		return operand{text: t[1 : len(t)-1]}, nil
	}
	name := strings.ReplaceAll(t, ".", "_") // os.name, as old metadata has it
	if name == "python_implementation" {
		name = "platform_python_implementation"
	}
	if !slices.Contains(markerVariables, name) {
		return operand{}, fmt.Errorf("the marker names %q, which is no variable", clip(t, 40))
	}
	return operand{variable: name}, nil
}

// compare compares as versions what are versions on both sides, and else as texts.
func compare(left operand, op string, right operand, env map[string]string) bool {
	a, b := left.in(env), right.in(env)
	if left.variable == "extra" || right.variable == "extra" {
		a, b = NormalizeName(a), NormalizeName(b)
	} else if slices.Contains(operators[:], op) {
		spec := Specifier{Op: op, Version: b}
		if v, err := ParseVersion(a); err == nil && spec.check() == nil {
			return spec.Contains(v)
		}
	}
	switch op {
	case "==":
		return a == b
	case "!=":
		return a != b
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "in":
		return strings.Contains(b, a)
	case "not in":
		return !strings.Contains(b, a)
	}
	return false
}
