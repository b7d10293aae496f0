package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"airlock/internal/units"
)

// Config is the [sandbox] section of the configuration. [Defaults] gives the values that hold where a
// file says nothing; the zero value is not valid.
type Config struct {
	// Backend is "auto", "native", "bwrap" or "direct".
	Backend string `toml:"backend"`
	// Read names more host paths that a run sees, read-only and at their own place.
	Read []string `toml:"read"`
	// Hide holds globs of workspace paths that a run cannot see, with the meaning of a .gitignore file. Who
	// carries them out reads them: here they are only text.
	Hide []string `toml:"hide"`
	// PassEnv names variables of the server's environment that a run gets; a '*' at the end stands for
	// any rest of the name.
	PassEnv []string `toml:"pass_env"`
	// Env holds variables that every run gets.
	Env map[string]string `toml:"env"`
	// Cache is the size of a private ~/.cache, which lands with a run and is discarded with it: "4GiB"; "" for none. Who
	// builds the Spec makes it.
	Cache string `toml:"cache"`
}

const defaultCache = "4GiB"

// Defaults returns the section as it is where nothing was configured.
func Defaults() Config {
	return Config{
		Backend: "auto",
		Read:    []string{},
		Hide:    []string{},
		PassEnv: []string{"LANG", "LC_*", "TERM", "TZ"},
		Env:     map[string]string{},
		Cache:   defaultCache,
	}
}

var backends = []string{"auto", "native", "bwrap", "direct"}

// Validate checks each value by itself. The error joins one error for each wrong value, in the order of
// the keys, and each begins with the key's name.
func (c Config) Validate() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("sandbox.%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if !slices.Contains(backends, c.Backend) {
		wrong("backend", "%q is not one of %s", c.Backend, strings.Join(backends, ", "))
	}
	for _, p := range c.Read {
		switch clean := filepath.Clean(p); {
		case strings.ContainsRune(p, 0):
			wrong("read", "%q is not a path", p)
		case !filepath.IsAbs(p):
			wrong("read", "%q is not an absolute path; write it from \"/\" on, or from \"~/\", which is your home directory", p)
		case clean == "/":
			wrong("read", "%q is the whole host; name what runs need", p)
		case under(clean, "/proc") || under(clean, "/dev") || under(clean, "/sys"):
			wrong("read", "%q can't be shown; a run has its own /proc and /dev, and no /sys", p)
		}
	}
	for _, g := range c.Hide {
		if g == "" || strings.ContainsRune(g, 0) {
			wrong("hide", "%q is not a glob", g) // whatever globs may be
		}
	}
	for _, name := range c.PassEnv {
		if !isName(strings.TrimSuffix(name, "*")) {
			wrong("pass_env", "%q is not the name of a variable (a * may stand at its end)", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if !isName(name) {
			wrong("env", "%q is not the name of a variable", name)
		} else if strings.ContainsRune(c.Env[name], 0) {
			wrong("env", "the value of %s holds a NUL byte", name)
		}
	}
	if c.Cache != "" {
		if _, err := units.ParseSize(c.Cache); err != nil {
			wrong("cache", "%v", err)
		}
	}
	return errors.Join(errs...)
}

// Environ returns the variables of environ, as KEY=VALUE, that PassEnv names, and then those of Env,
// sorted by name. It is not the whole environment of a run: HOME, PATH and the like are the caller's.
func (c Config) Environ(environ []string) []string {
	passed := map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if isName(name) && slices.ContainsFunc(c.PassEnv, func(p string) bool { return matchName(p, name) }) {
			passed[name] = value
		}
	}
	maps.Copy(passed, c.Env)
	out := make([]string, 0, len(passed))
	for _, name := range slices.Sorted(maps.Keys(passed)) {
		out = append(out, name+"="+passed[name])
	}
	return out
}

// isName reports whether s is the name of a variable as shells have them. An exported bash function,
// whose name ends in %%, is none.
func isName(s string) bool {
	for i, r := range []byte(s) {
		letter := r == '_' || 'a' <= r|0x20 && r|0x20 <= 'z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func matchName(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
