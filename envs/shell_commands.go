package envs

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"airlock/internal/pattern"
)

// wrappers run the command that follows their options. With each stand the letters of its options that take a word.
var wrappers = map[string]string{
	"sudo": "ugpCTDhRrt", "doas": "uC", "command": "", "builtin": "", "exec": "a",
	"nohup": "", "setsid": "", "time": "of", "nice": "n", "ionice": "cn",
	"stdbuf": "ioe", "env": "uC", "xargs": "aEIiLlnPsd", "timeout": "ks",
	"chroot": "", "unbuffer": "", "fakeroot": "", "busybox": "", "then": "", "taskset": "cp", "parallel": "jS",
	"unshare": "", "setpriv": "", "chronic": "", "catchsegv": "", "strace": "oe", "script": "", "watch": "n",
}

// operandsBefore is how many words stand between a wrapper's options and its command.
var operandsBefore = map[string]int{"timeout": 1, "chroot": 1, "taskset": 1}

var (
	shellName   = names(`(?:ba|da|z|k|a|mk|r|fi)?sh`)
	pythonName  = names(`(?:python|pypy)[0-9.]*`)
	rProgram    = names(`R|Rscript|littler|r`)
	assignment  = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*=`)
	shellOption = pattern.Lazy(`^-[A-Za-z]*c$`)
)

// argv looks at the words of a command that was expanded, and at the input that it is known to get.
func (s *scan) argv(argv []string, input string) string {
	inner, ok := s.nested(s.args)
	if !ok {
		return ""
	}
	for len(argv) > 0 && (argv[0] == "" || assignment().MatchString(argv[0])) {
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
	case shellName().MatchString(name):
		return inner.shell(args, input)
	case pythonName().MatchString(name):
		return inner.python(args, input)
	case rProgram().MatchString(name):
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
func (s *scan) wrapped(name string, args []string, takes string, input string) string {
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
		case len(a) == 2 && a[0] == '-' && strings.Contains(takes, a[1:]):
			i++
		case strings.HasPrefix(a, "-") || assignment().MatchString(a):
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
		case shellOption().MatchString(a) && i+1 < len(args):
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

var pythonModule = pattern.Lazy(`^-[A-Za-z]*m(.*)$`)

// python looks at what Python is given: a module, a text, a program that is pip, or its input.
func (s *scan) python(args []string, input string) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		rest := args[min(i+1, len(args)):]
		switch {
		case a == "-X" || a == "-W" || a == "--check-hash-based-pycs":
			i++
		case shellOption().MatchString(a) && len(rest) > 0:
			return s.pythonCode(rest[0], rest[1:])
		case strings.HasPrefix(a, "-c") && len(a) > 2:
			return s.pythonCode(a[2:], rest)
		case a == "-":
			return s.pythonCode(input, rest)
		case strings.HasPrefix(a, "--"):
		case pythonModule().MatchString(a):
			module := pythonModule().FindStringSubmatch(a)[1]
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
