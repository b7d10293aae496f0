package envs

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"airlock/internal/units"
)

// Question gives what the user is asked, for the whole set: where to, from where, what, and last the
// model's own words, quoted. Everything in it is one line a fact and printable.
func (p *Plan) Question() string {
	var b strings.Builder
	where := fmt.Sprintf("the %s environment %q", map[string]string{LanguagePython: "Python", LanguageR: "R"}[p.runtime.language()], p.Want.Environment)
	if p.Want.Conversation {
		where = fmt.Sprintf("this conversation (on top of the Python environment %q)", p.Want.Environment)
	}
	needed := dependants(p.Set, p.runtime.markers())
	var total int64
	known := true
	var lines []string
	for _, c := range p.Changes {
		if c.Version == "" {
			lines = append(lines, fmt.Sprintf("  %s %s is removed", c.Name, c.Was))
			continue
		}
		pkg, _ := find(p.Set, c.Name)
		line := "  " + c.Name + " " + pkg.Version
		if c.Was != "" {
			line = fmt.Sprintf("  %s %s in place of %s", c.Name, pkg.Version, c.Was)
		}
		if pkg.Size > 0 {
			line += ", " + units.Size(pkg.Size).Rounded()
		} else {
			known = false
		}
		total += pkg.Size
		if !slices.ContainsFunc(p.Decision.Ask, func(a Package) bool { return a.Name == c.Name }) {
			line += ", allowed"
		}
		if pkg.Yanked {
			line += ", YANKED by its author"
		}
		if by := needed[c.Name]; len(by) > 0 {
			line += ", needed by " + strings.Join(by[:min(3, len(by))], ", ")
		}
		if near := p.Decision.Near[c.Name]; near != "" {
			line += fmt.Sprintf(", NOT %s, which is allowed: the names differ", near)
		}
		lines = append(lines, line)
	}
	fmt.Fprintf(&b, "Install %s into %s", units.Counted(len(p.added()), "package"), where)
	if known && total > 0 {
		fmt.Fprintf(&b, " (%s)", units.Size(total).Rounded())
	}
	fmt.Fprintf(&b, "?\nFrom %s\n%s\n", p.index, strings.Join(lines, "\n"))
	fmt.Fprintf(&b, "Asked for: %s", strings.Join(slices.Concat(p.Want.Requirements, p.Want.again), ", "))
	if !p.Additive {
		b.WriteString("\nThis changes what is there.")
	}
	if p.Want.Reason != "" {
		fmt.Fprintf(&b, "\nThe model's reason: %s", quoteReason(p.Want.Reason))
	}
	return b.String()
}

// maxReason is how many characters of the model's reason are shown.
const maxReason = 200

// quoteReason keeps a model's words from looking like ours.
func quoteReason(s string) string {
	runes := []rune(s)
	if len(runes) > maxReason {
		runes = runes[:maxReason]
	}
	for i, r := range runes {
		if unicode.IsSpace(r) {
			runes[i] = ' '
		}
	}
	return strconv.QuoteToGraphic(string(runes))
}

// bareURL gives an address without what may be a password.
func bareURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "the index"
	}
	u.User = nil
	return u.String()
}
