package envs

import (
	"strings"

	"airlock/internal/pattern"
)

// InstallerInPython names the installer that a Python program would run, "" if none is seen. It looks at the
// lists and texts that the program hands to what starts programs, not at what it only prints or writes.
func InstallerInPython(code string) (found string) {
	defer func() {
		if recover() != nil { // as with a command
			found = ""
		}
	}()
	return newScan().inPython(code)
}

var (
	// starter is what starts a program, or pip within the process.
	starter = pattern.Lazy(`\b(os\.(?:system|popen|exec[a-z]*|spawn[a-z]*|posix_spawnp?)|subprocess\.[A-Za-z_]+|asyncio\.create_subprocess_(?:exec|shell)|` +
		`sh\.(?:pip3?|python3?)|system|popen|run|call|check_call|check_output|Popen|getoutput|getstatusoutput|execvp?e?|create_subprocess_(?:exec|shell)|pty\.spawn)\s*\(`)
	// insidePip is pip in this process.
	insidePip = pattern.Lazy(`(?m)^\s*(?:import pip\b|from pip\b)|\bpip(?:\._internal)?(?:\.cli)?(?:\.main)?\.main\s*\(|__import__\(\s*["']pip|import_module\(\s*["']pip|run_module\(\s*["']pip`)
	// ensure is the module that installs pip.
	ensure = pattern.Lazy(`\bensurepip\.(?:bootstrap|_main|_bootstrap)\s*\(`)
	// magic is what notebooks have.
	magic = pattern.Lazy(`(?m)^\s*[!%]\s*(.+)$`)
	// named is a text or list with a name.
	named = pattern.Lazy(`(?m)^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?:[rbfRBF]{0,2}["'\[(])`)
	ident = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (s *scan) inPython(code string) string {
	if len(code) > maxScript {
		return ""
	}
	for _, m := range magic().FindAllStringSubmatch(code, 50) {
		if found := s.script(m[1]); found != "" {
			return found
		}
	}
	if ensure().MatchString(code) {
		return "ensurepip"
	}
	values := map[string]pythonValue{}
	for _, m := range named().FindAllStringSubmatchIndex(code, 200) {
		v, _ := readValue(code[m[1]-1:], true)
		values[code[m[2]:m[3]]] = v
	}
	inPip := insidePip().MatchString(code)
	if inPip {
		for i := range len(code) {
			if code[i] != '[' {
				continue
			}
			if !s.step() {
				return ""
			}
			v, _ := readValue(code[i:], true)
			if found := installs(append([]string{"pip"}, v.words...)); found != "" && len(v.words) > 0 && v.words[0] != "pip" {
				return found
			} else if found := installs(v.words); found != "" {
				return found
			}
		}
	}
	for _, m := range starter().FindAllStringIndex(code, 500) {
		if !s.step() {
			return ""
		}
		if found := s.started(code[m[1]-1:], values); found != "" {
			return found
		}
	}
	return ""
}

// started looks at the arguments of something that starts a program; args begins with the bracket.
func (s *scan) started(args string, values map[string]pythonValue) string {
	all, _ := readValue(args, false)
	if len(all.items) == 0 {
		return ""
	}
	resolve := func(v pythonValue) pythonValue {
		if known, ok := values[v.name]; ok && v.name != "" {
			return known
		}
		return v
	}
	first := resolve(all.items[0])
	if first.list {
		return s.argv(first.words, "")
	}
	if first.isText {
		// A shell's text, or the program with its arguments as words or as a list.
		if found := s.script(first.text); found != "" {
			return found
		}
	}
	var words []string
	for _, item := range all.items {
		v := resolve(item)
		if v.list {
			if found := s.argv(v.words, ""); found != "" {
				return found
			}
			continue
		}
		words = append(words, v.word())
	}
	if found := s.argv(words, ""); found != "" {
		return found
	}
	if len(words) > 1 {
		return s.argv(words[1:], "") // os.execvp(program, argv...), which names the program twice
	}
	return ""
}

// pythonValue is a literal, as far as it can be read.
type pythonValue struct {
	isText bool
	text   string
	list   bool
	words  []string // of a list
	items  []pythonValue
	name   string // an identifier
	raw    string // what it is else
}

// word is the value as a word of a command. The interpreter that runs is Python, whatever its path.
func (v pythonValue) word() string {
	switch {
	case v.isText:
		return v.text
	case strings.Contains(v.raw, "executable"):
		return "python"
	}
	return ""
}

// readValue reads what stands at the beginning of text: a literal, or a list if it begins with a bracket.
// sequence says that such a bracket is a list's and not a call's. It returns the rest.
func readValue(text string, sequence bool) (pythonValue, string) {
	return readNested(text, sequence, 0)
}

func readNested(text string, sequence bool, depth int) (pythonValue, string) {
	var v pythonValue
	if text == "" || depth > 20 {
		return v, ""
	}
	if !strings.ContainsRune("[(", rune(text[0])) {
		return readAtom(text, depth)
	}
	v.list = sequence
	rest := text[1:]
	for {
		rest = strings.TrimLeft(rest, " \t\r\n,")
		if rest == "" || rest[0] == ']' || rest[0] == ')' {
			break
		}
		if rest[0] == '#' {
			_, rest, _ = strings.Cut(rest, "\n")
			continue
		}
		before := len(rest)
		var item pythonValue
		if rest[0] == '[' || rest[0] == '(' {
			item, rest = readNested(rest, true, depth+1)
		} else {
			item, rest = readAtom(rest, depth)
		}
		v.items = append(v.items, item)
		v.words = append(v.words, item.word())
		if len(rest) >= before || len(v.items) > 500 {
			break
		}
	}
	return v, strings.TrimPrefix(strings.TrimPrefix(rest, "]"), ")")
}

// readAtom reads an expression up to the comma or bracket that ends it. Texts that stand beside each other, or
// are added, are one.
func readAtom(text string, depth int) (pythonValue, string) {
	var v pythonValue
	var raw strings.Builder
	rest := text
	for rest != "" {
		c := rest[0]
		switch {
		case c == ',' || c == ']' || c == ')' || c == '\n' && v.isText && depth == 0 && raw.Len() == 0:
			v.raw = strings.TrimSpace(raw.String())
			if ident().MatchString(v.raw) && !v.isText {
				v.name = v.raw
			}
			return v, rest
		case c == '"' || c == '\'':
			prefix := strings.ToLower(raw.String())
			var text string
			text, rest = readText(rest)
			if strings.HasSuffix(prefix, "f") {
				text = formatted().ReplaceAllStringFunc(text, func(m string) string {
					if strings.Contains(m, "executable") {
						return "python"
					}
					return ""
				})
			}
			v.isText = true
			v.text += text
			raw.Reset()
			continue
		case c == '[' || c == '(':
			_, rest = readNested(rest, true, depth+1)
			raw.WriteString("()")
			continue
		case c != ' ' && c != '+':
			raw.WriteByte(c)
		}
		rest = rest[1:]
	}
	v.raw = raw.String()
	return v, ""
}

var formatted = pattern.Lazy(`\{[^{}]*\}`)

// readText reads a string literal, with its escapes for what counts here.
func readText(s string) (text, rest string) {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	s = s[len(quote):]
	var b strings.Builder
	for s != "" && !strings.HasPrefix(s, quote) {
		if s[0] == '\\' && len(s) > 1 {
			switch s[1] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\n':
			default:
				b.WriteByte(s[1])
			}
			s = s[2:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String(), strings.TrimPrefix(s, quote)
}
