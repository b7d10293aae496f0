package envs

import (
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
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

// wrappers run the command that follows their options. The pattern is of options that take a word.
var wrappers = map[string]*regexp.Regexp{
	"sudo": regexp.MustCompile(`^-[ugpCTDhRrt]$`), "doas": regexp.MustCompile(`^-[uC]$`), "command": nil, "builtin": nil, "exec": regexp.MustCompile(`^-a$`),
	"nohup": nil, "setsid": nil, "time": regexp.MustCompile(`^-[of]$`), "nice": regexp.MustCompile(`^-n$`), "ionice": regexp.MustCompile(`^-[cn]$`),
	"stdbuf": regexp.MustCompile(`^-[ioe]$`), "env": regexp.MustCompile(`^-[uC]$`), "xargs": regexp.MustCompile(`^-[aEIiLlnPsd]$`), "timeout": regexp.MustCompile(`^-[ks]$`),
	"chroot": nil, "unbuffer": nil, "fakeroot": nil, "busybox": nil, "then": nil, "taskset": regexp.MustCompile(`^-[cp]$`), "parallel": regexp.MustCompile(`^-[jS]$`),
	"unshare": nil, "setpriv": nil, "chronic": nil, "catchsegv": nil, "strace": regexp.MustCompile(`^-[oe]$`), "script": nil, "watch": regexp.MustCompile(`^-n$`),
}

// operandsBefore is how many words stand between a wrapper's options and its command.
var operandsBefore = map[string]int{"timeout": 1, "chroot": 1, "taskset": 1}

var (
	shellName   = names(`(?:ba|da|z|k|a|mk|r|fi)?sh`)
	pythonName  = names(`(?:python|pypy)[0-9.]*`)
	rProgram    = names(`R|Rscript|littler|r`)
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	shellOption = regexp.MustCompile(`^-[A-Za-z]*c$`)
)

// argv looks at the words of a command that was expanded, and at the input that it is known to get.
func (s *scan) argv(argv []string, input string) string {
	inner, ok := s.nested(s.args)
	if !ok {
		return ""
	}
	for len(argv) > 0 && (argv[0] == "" || assignment.MatchString(argv[0])) {
		argv = argv[1:]
	}
	if len(argv) == 0 {
		return ""
	}
	name, args := path.Base(argv[0]), argv[1:]
	if text, ok := s.aliases[argv[0]]; ok {
		delete(inner.aliases, argv[0]) // one that names itself is expanded once
		found := inner.script(text + " " + strings.Join(quoteAll(args), " "))
		s.aliases[argv[0]] = text
		return found
	}
	if body, ok := s.functions[argv[0]]; ok {
		called, fine := s.nested(args)
		if !fine {
			return ""
		}
		return called.node(body)
	}
	switch {
	case name == "alias":
		for _, a := range args {
			if k, v, ok := strings.Cut(a, "="); ok {
				s.aliases[k] = v
			}
		}
		return ""
	case name == "eval":
		return inner.script(strings.Join(args, " "))
	case name == "trap" && len(args) > 0:
		return inner.script(args[0])
	case shellName.MatchString(name):
		return inner.shell(args, input)
	case pythonName.MatchString(name):
		return inner.python(args, input)
	case rProgram.MatchString(name):
		return inner.r(args, input)
	case name == "find":
		for i, a := range args {
			if a == "-exec" || a == "-execdir" || a == "-ok" {
				if found := inner.argv(args[i+1:], ""); found != "" {
					return found
				}
			}
		}
		return ""
	case name == "su" || name == "script":
		for i, a := range args[:max(0, len(args)-1)] {
			if a == "-c" || a == "--command" {
				return inner.script(args[i+1])
			}
		}
	}
	if takes, ok := wrappers[name]; ok {
		return inner.wrapped(name, args, takes, input)
	}
	return installs(argv)
}

func quoteAll(words []string) []string {
	quoted := make([]string, len(words))
	for i, w := range words {
		q, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			q = "''"
		}
		quoted[i] = q
	}
	return quoted
}

// wrapped looks at what a wrapper runs.
func (s *scan) wrapped(name string, args []string, takes *regexp.Regexp, input string) string {
	skip := operandsBefore[name]
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case name == "env" && (a == "-S" || a == "--split-string") && i+1 < len(args):
			return s.script(args[i+1] + " " + strings.Join(quoteAll(args[i+2:]), " "))
		case name == "env" && strings.HasPrefix(a, "-S"):
			return s.script(a[2:] + " " + strings.Join(quoteAll(args[i+1:]), " "))
		case name == "env" && strings.HasPrefix(a, "--split-string="):
			return s.script(strings.TrimPrefix(a, "--split-string=") + " " + strings.Join(quoteAll(args[i+1:]), " "))
		case name == "command" && (a == "-v" || a == "-V"):
			return "" // only asks
		case a == "--":
			return s.argv(args[i+1:], input)
		case takes != nil && takes.MatchString(a):
			i++
		case strings.HasPrefix(a, "-") || assignment.MatchString(a):
		case skip > 0:
			skip--
		default:
			if name == "xargs" || name == "parallel" {
				// What is read becomes the last words.
				return s.argv(append(slices.Clone(args[i:]), strings.Fields(input)...), "")
			}
			if name == "watch" || name == "parallel" {
				return s.script(strings.Join(args[i:], " "))
			}
			return s.argv(args[i:], input)
		}
	}
	return ""
}

// shell looks at what a shell is given: a text with -c, or its input if there is no script.
func (s *scan) shell(args []string, input string) string {
	for i, a := range args {
		switch {
		case shellOption.MatchString(a) && i+1 < len(args):
			inner, ok := s.nested(nil)
			if !ok {
				return ""
			}
			if i+3 <= len(args) {
				inner.args = args[min(i+3, len(args)):]
			}
			return inner.script(args[i+1])
		case a == "-s" || a == "-":
			return s.script(input)
		case a == "-o" || a == "+o" || strings.HasPrefix(a, "-"):
		case i > 0 && (args[i-1] == "-o" || args[i-1] == "+o"):
		default:
			return "" // a script of its own
		}
	}
	return s.script(input)
}

var pythonModule = regexp.MustCompile(`^-[A-Za-z]*m(.*)$`)

// python looks at what Python is given: a module, a text, a program that is pip, or its input.
func (s *scan) python(args []string, input string) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		rest := args[min(i+1, len(args)):]
		switch {
		case a == "-X" || a == "-W" || a == "--check-hash-based-pycs":
			i++
		case shellOption.MatchString(a) && len(rest) > 0:
			return s.pythonCode(rest[0], rest[1:])
		case strings.HasPrefix(a, "-c") && len(a) > 2:
			return s.pythonCode(a[2:], rest)
		case a == "-":
			return s.pythonCode(input, rest)
		case strings.HasPrefix(a, "--"):
		case pythonModule.MatchString(a):
			module := pythonModule.FindStringSubmatch(a)[1]
			if module == "" && len(rest) > 0 {
				module, rest = rest[0], rest[1:]
			}
			module = strings.TrimSuffix(strings.TrimSuffix(module, ".__main__"), "._internal")
			if module == "ensurepip" && slices.Contains(rest, "--version") {
				return ""
			}
			if found := installs(append([]string{module}, rest...)); found != "" {
				return "python -m " + found
			}
			return ""
		case strings.HasPrefix(a, "-"):
		default:
			base := strings.TrimSuffix(path.Base(a), ".py")
			if base == "__main__" || base == "__pip-runner__" {
				base = path.Base(path.Dir(a))
			}
			if base == "get-pip" {
				return "get-pip.py"
			}
			return installs(append([]string{base}, rest...))
		}
	}
	return s.pythonCode(input, nil)
}

func (s *scan) pythonCode(code string, _ []string) string {
	inner, ok := s.nested(nil)
	if !ok {
		return ""
	}
	return inner.inPython(code)
}

// r looks at what R is given.
func (s *scan) r(args []string, input string) string {
	for i, a := range args {
		switch {
		case a == "CMD" && i+1 < len(args) && args[i+1] == "INSTALL":
			return "R CMD INSTALL"
		case a == "-e" && i+1 < len(args):
			if found := installsInR(args[i+1]); found != "" {
				return found
			}
		case strings.HasPrefix(a, "-e"), strings.HasPrefix(a, "--eval="):
			if found := installsInR(a); found != "" {
				return found
			}
		}
	}
	return installsInR(input)
}
