package envs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// What installs packages, and how it is recognised in the words of a command. It is matched on the
// subcommand, so that "pip list" and "npm run" are nothing.

// UseInstead says, for a model, that an installer is refused and what to do.
func UseInstead(found string) string {
	return fmt.Sprintf("%s is not how packages are installed here: use the tool package_install (for good; with language \"r\" for R) or python_env with action \"request\" (Python, for this conversation), so that the user decides the whole set", found)
}

// installer is a program that installs, among other things.
type installer struct {
	name func() *regexp.Regexp
	// known are its subcommands, install those among them that install. Without known the first word that is
	// no option is the subcommand. Both are words with spaces for subcommands of subcommands.
	known, install []string
	// bare installs if there is no subcommand at all.
	bare bool
	// always installs, whatever follows.
	always bool
	// flags are options that install.
	flags func() *regexp.Regexp
	// unless are options with which it does not.
	unless []string
}

func names(alternatives string) func() *regexp.Regexp {
	return pattern.Lazy(`^(?:` + alternatives + `)$`)
}

var installers = []installer{
	{
		name:    names(`pip[0-9.]*`),
		known:   strings.Fields("install download uninstall freeze inspect list show check config search cache index wheel hash completion debug help lock"),
		install: strings.Fields("install download wheel"),
	},
	{name: names(`easy_install[0-9.-]*`), always: true},
	{name: names(`ensurepip`), always: true},
	{name: names(`pipx`), install: strings.Fields("install inject upgrade reinstall run install-all upgrade-all")},
	{name: names(`uv`), install: []string{"pip install", "pip sync", "add", "sync", "tool install", "tool upgrade", "tool run"}, unless: []string{"--offline"}},
	{name: names(`uvx`), always: true},
	{name: names(`conda|mamba|micromamba`), install: []string{"install", "create", "update", "upgrade", "env create", "env update"}, unless: []string{"--offline"}},
	{name: names(`poetry|pdm|pipenv`), install: strings.Fields("add install update sync lock")},
	{name: names(`apt|apt-get|aptitude`), install: strings.Fields("install update upgrade dist-upgrade full-upgrade build-dep reinstall")},
	{name: names(`dnf|yum|microdnf|zypper`), install: strings.Fields("install in update upgrade groupinstall localinstall reinstall")},
	{name: names(`apk`), install: strings.Fields("add update upgrade")},
	{name: names(`brew|snap|flatpak|port`), install: strings.Fields("install upgrade reinstall")},
	{name: names(`pacman`), flags: pattern.Lazy(`^-S[a-z]*$`)},
	{name: names(`dpkg`), flags: pattern.Lazy(`^(-i|--install)$`)},
	{name: names(`npm|cnpm`), install: strings.Fields("install i in ins inst isntall add ci clean-install install-test it update up upgrade"), unless: []string{"--offline"}},
	{name: names(`pnpm|bun`), install: strings.Fields("install i add update up dlx"), unless: []string{"--offline"}},
	{name: names(`yarn`), install: strings.Fields("install add upgrade up"), bare: true, unless: []string{"--offline", "--version", "-v"}},
}

// installs says, as "pip install", if the words of a command install something; "" if not.
func installs(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	name, args := strings.TrimSuffix(path.Base(argv[0]), ".exe"), argv[1:]
	for _, in := range installers {
		if in.name().MatchString(name) {
			return in.judge(name, args)
		}
	}
	return ""
}

func (in installer) judge(name string, args []string) string {
	if slices.ContainsFunc(args, func(a string) bool { return a == "--help" || a == "-h" || slices.Contains(in.unless, a) }) {
		return ""
	}
	if in.always {
		return name
	}
	if in.flags != nil {
		if i := slices.IndexFunc(args, in.flags().MatchString); i >= 0 {
			return name + " " + args[i]
		}
		return ""
	}
	var words []string
	for _, a := range args {
		if in.known != nil && slices.Contains(in.known, a) || in.known == nil && !strings.HasPrefix(a, "-") {
			words = append(words, a)
		}
	}
	if len(words) == 0 {
		if in.bare {
			return name
		}
		return ""
	}
	if slices.Contains(in.install, words[0]) {
		return name + " " + words[0]
	}
	if len(words) > 1 && slices.Contains(in.install, words[0]+" "+words[1]) {
		return name + " " + words[0] + " " + words[1]
	}
	return ""
}

// rInstaller matches R code that installs.
var rInstaller = pattern.Lazy(`\b(install\.packages|update\.packages|(BiocManager|pak|renv|remotes|devtools|pacman)::+(install|install_[a-z]+|p_load|pkg_install|restore))\s*\(`)

// installsInR says it of R code.
func installsInR(code string) string {
	if m := rInstaller().FindStringSubmatch(code); m != nil {
		return m[1]
	}
	return ""
}
