package envs

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// InstallerInShell names the installer that a shell command would run, "" if none is seen. It reads the
// command as bash does, with its quoting, variables, functions and aliases, and looks into what is handed to
// another shell. A command that it can't read is none: the shell will say so itself.
func InstallerInShell(command string) (found string) {
	defer func() {
		if recover() != nil { // a command that breaks its reader is one that is not read
			found = ""
		}
	}()
	return newScan().script(command)
}

func newScan() *scan {
	return &scan{vars: map[string]string{}, arrays: map[string][]string{}, aliases: map[string]string{}, functions: map[string]*syntax.Stmt{}}
}

// scan is the state of reading a command.
type scan struct {
	vars      map[string]string
	arrays    map[string][]string
	aliases   map[string]string
	functions map[string]*syntax.Stmt
	args      []string // $1 and so on
	depth     int
	left      *int // steps that are left, for all that is nested
}

const (
	maxNesting = 12
	maxSteps   = 20_000
	maxScript  = 1 << 20
)

// nested is a scan of something in this one.
func (s *scan) nested(args []string) (*scan, bool) {
	if s.left == nil {
		n := maxSteps
		s.left = &n
	}
	inner := *s
	inner.args, inner.depth = args, s.depth+1
	return &inner, inner.depth < maxNesting && s.step()
}

func (s *scan) step() bool {
	if s.left == nil {
		n := maxSteps
		s.left = &n
	}
	*s.left--
	return *s.left > 0
}

func (s *scan) script(text string) string {
	inner, ok := s.nested(s.args)
	if !ok || len(text) > maxScript {
		return ""
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return ""
	}
	return inner.statements(file.Stmts)
}

// statements looks at statements in their order, since a variable has the value of the last assignment
// before.
func (s *scan) statements(stmts []*syntax.Stmt) (found string) {
	for _, stmt := range stmts {
		if found = s.node(stmt); found != "" {
			return found
		}
	}
	return ""
}

// node looks at everything in a part of the syntax tree.
func (s *scan) node(n syntax.Node) (found string) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if found != "" || !s.step() {
			return false
		}
		switch n := n.(type) {
		case *syntax.FuncDecl:
			s.functions[n.Name.Value] = n.Body
		case *syntax.DeclClause:
			s.assign(n.Args)
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				found = s.piped(n)
			}
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok {
				found = s.call(call, n.Redirs)
			}
		}
		return found == ""
	})
	return found
}

func (s *scan) assign(assigns []*syntax.Assign) {
	for _, a := range assigns {
		if a.Name == nil {
			continue
		}
		if a.Value != nil {
			s.vars[a.Name.Value] = strings.Join(s.fields(a.Value), " ")
		}
		if a.Array != nil {
			var words []*syntax.Word
			for _, e := range a.Array.Elems {
				if e.Value != nil {
					words = append(words, e.Value)
				}
			}
			s.arrays[a.Name.Value] = s.fields(words...)
		}
	}
}

// call looks at one simple command.
func (s *scan) call(c *syntax.CallExpr, redirs []*syntax.Redirect) string {
	if len(c.Args) == 0 {
		s.assign(c.Assigns)
		return ""
	}
	return s.argv(s.fields(c.Args...), s.input(redirs))
}

// input is the text that redirections give to a command.
func (s *scan) input(redirs []*syntax.Redirect) string {
	var b strings.Builder
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				b.WriteString(s.text(r.Hdoc))
			}
		case syntax.WordHdoc:
			b.WriteString(s.text(r.Word) + "\n")
		}
	}
	return b.String()
}

// text is a word as one text, without its being split.
func (s *scan) text(w *syntax.Word) string {
	if !expandable(w) {
		return ""
	}
	text, err := expand.Document(s.config(), w)
	if err != nil {
		return ""
	}
	return text
}

// piped looks at what a pipe gives to a shell or an interpreter.
func (s *scan) piped(b *syntax.BinaryCmd) string {
	right, ok := b.Y.Cmd.(*syntax.CallExpr)
	if !ok || len(right.Args) == 0 {
		return ""
	}
	text := s.output(b.X)
	if text == "" {
		return ""
	}
	return s.argv(s.fields(right.Args...), text)
}

// output is what a statement prints, as far as that can be told: echo, printf, and cat of a here-document.
func (s *scan) output(stmt *syntax.Stmt) string {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok {
		return ""
	}
	argv := s.fields(call.Args...)
	if len(argv) == 0 {
		return ""
	}
	switch path.Base(argv[0]) {
	case "echo", "printf":
		return strings.NewReplacer(`\n`, "\n", `\t`, "\t", "%s", "").Replace(strings.Join(argv[1:], " "))
	case "cat", "tee":
		return s.input(stmt.Redirs)
	case "which", "type":
		return argv[len(argv)-1]
	case "command":
		if len(argv) > 2 && (argv[1] == "-v" || argv[1] == "-V") {
			return argv[2]
		}
	}
	return ""
}
