package envs

import (
	"errors"
	"io"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// fields expands words as a shell does. Files are not looked at; what only running would tell is empty.
func (s *scan) fields(words ...*syntax.Word) []string {
	var all []string
	for _, w := range words {
		if !expandable(w) {
			all = append(all, "")
			continue
		}
		fields, err := expand.Fields(s.config(), w)
		if err != nil {
			fields = []string{""}
		}
		all = append(all, fields...)
	}
	return all
}

// expandable reports whether a word can be expanded without end and without much: "{1..99999999}" can't,
// nor can many braces that multiply each other.
func expandable(w *syntax.Word) bool {
	if w == nil || len(w.Parts) > 500 {
		return false
	}
	braces, commas := 0, 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			braces += strings.Count(lit.Value, "{")
			commas += strings.Count(lit.Value, ",")
			if strings.Contains(lit.Value, "..") && strings.Contains(lit.Value, "{") {
				return false
			}
		}
	}
	return braces == 0 || braces < 5 && commas < 16
}

func (s *scan) config() *expand.Config {
	return &expand.Config{
		Env:       environ{s},
		ProcSubst: func(*syntax.ProcSubst) (string, error) { return "/dev/null", nil }, // it is walked through by itself
		CmdSubst: func(w io.Writer, c *syntax.CmdSubst) error {
			if !s.step() {
				return errors.New("too much")
			}
			for _, stmt := range c.Stmts {
				if _, err := io.WriteString(w, s.output(stmt)+"\n"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// environ gives the variables of a scan.
type environ struct{ s *scan }

// Get implements expand.Environ.
func (e environ) Get(name string) expand.Variable {
	known := func(text string) expand.Variable {
		return expand.Variable{Set: true, Kind: expand.String, Str: text}
	}
	switch {
	case name == "@" || name == "*":
		return expand.Variable{Set: true, Kind: expand.Indexed, List: e.s.args}
	case len(name) == 1 && name[0] >= '1' && name[0] <= '9':
		if i := int(name[0] - '1'); i < len(e.s.args) {
			return known(e.s.args[i])
		}
	}
	if list, ok := e.s.arrays[name]; ok {
		return expand.Variable{Set: true, Kind: expand.Indexed, List: list}
	}
	if text, ok := e.s.vars[name]; ok {
		return known(text)
	}
	return expand.Variable{}
}

// Each implements expand.Environ.
func (e environ) Each(f func(name string, v expand.Variable) bool) {
	for name := range e.s.vars {
		if !f(name, e.Get(name)) {
			return
		}
	}
}
