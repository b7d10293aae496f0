package sandbox

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxCommand is how long, in bytes, the command may be with the directory and the name of the shell that was started ahead.
// Quoted for what the shell reads first, where one byte becomes four at most, they fit into a pipe.
const maxCommand = 8 << 10

// shellFor is what can be started ahead for runs like s: nil where they execute something else than a bash with a command, or
// in an environment that counts before the command does.
func shellFor(s Spec) *bash {
	if !canTrace || len(s.Argv) != 3 || s.Argv[1] != "-c" || !path.IsAbs(s.Argv[0]) || path.Base(s.Argv[0]) != "bash" {
		return nil
	}
	if slices.ContainsFunc(s.Env, countsAtStart) {
		return nil
	}
	return &bash{wire(s.Argv[0]), toWire(s.Env)}
}

// countsAtStart reports whether a variable has bash, or what links it and sets it up, do something else before the command: read
// a file that may be the run's, look at where it was started, not read what it is given, or begin with a value that
// [bash.beginning] would set anew. Functions are variables of bash's (BASH_FUNC_), and could have the names of what is
// called then.
func countsAtStart(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	for _, prefix := range []string{"BASH", "GLIBC_", "LD_", "MALLOC_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"ENV", "GCONV_PATH", "LOCPATH", "NLSPATH", "OLDPWD", "POSIXLY_CORRECT", "POSIX_PEDANTIC", "PS4", "PWD", "SECONDS", "SHELLOPTS",
		"TZDIR", "_",
	}, name)
}

// takes reports whether the shell can become what a run executes.
func (s *bash) takes(c *config) bool {
	return !c.Stdin && len(c.Argv) == 3 && c.Argv[0] == s.Path && c.Argv[1] == "-c" && !isOption(c.Argv[2]) &&
		len(c.Argv[2])+len(c.Dir)+len(s.Path) <= maxCommand && slices.Equal(c.Env, s.Env)
}

// isOption reports whether a bash takes what follows -c for further options, and asks for a command behind them.
func isOption(command wire) bool {
	return strings.HasPrefix(string(command), "-") || strings.HasPrefix(string(command), "+")
}

// equal compares shells; either may be nil.
func (s *bash) equal(o *bash) bool {
	return s == o || s != nil && o != nil && s.Path == o.Path && slices.Equal(s.Env, o.Env)
}

// shellVariable names what a bash that nobody types into reads first.
const shellVariable = "BASH_ENV"

// beginning is what a shell that becomes c's reads first. It takes the run's output from the first of descriptors, and closes
// them. Then it says what a bash that is started now would find: its directory and no former one, its command, no time gone
// by, and the last argument that was.
func (s *bash) beginning(c *config, descriptors []int) string {
	var b strings.Builder
	b.WriteString("exec")
	for _, fd := range []string{"1", "2"} {
		b.WriteString(" " + fd + ">&" + strconv.Itoa(descriptors[0]))
	}
	for _, fd := range descriptors {
		b.WriteString(" " + strconv.Itoa(fd) + ">&-")
	}
	b.WriteString("\ncd -P -- " + shellQuoted(c.Dir) + "\n")
	b.WriteString("unset " + shellVariable + " OLDPWD\nexport OLDPWD\nSECONDS=0\n")
	b.WriteString("BASH_EXECUTION_STRING=" + shellQuoted(c.Argv[2]) + "\n")
	b.WriteString(": " + shellQuoted(s.Path) + "\n")
	return b.String()
}

// shellQuoted writes text as a shell reads it.
func shellQuoted(text wire) string { return "'" + strings.ReplaceAll(string(text), "'", `'\''`) + "'" }
