package envs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"airlock/internal/pattern"
)

// Version is a version as PEP 440 has them, and ordered as that says.
type Version struct {
	text    string
	epoch   int
	release []int
	pre     [2]int // phase (a, b, rc are 1, 2, 3; 0 is none) and number
	post    int    // -1 is none
	dev     int    // -1 is none
	local   string
}

var versionForm = pattern.Lazy(`(?i)^v?(?:([0-9]{1,9})!)?([0-9]{1,9}(?:\.[0-9]{1,9}){0,30})` +
	`(?:[-_.]?(alpha|beta|preview|pre|a|b|c|rc)[-_.]?([0-9]{0,9}))?` +
	`(?:-([0-9]{1,9})|[-_.]?(post|rev|r)[-_.]?([0-9]{0,9}))?` +
	`(?:[-_.]?(dev)[-_.]?([0-9]{0,9}))?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

// ParseVersion reads a version in any of the spellings that PEP 440 takes for it.
func ParseVersion(s string) (Version, error) {
	m := versionForm().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version", clip(s, 80))
	}
	v := Version{text: strings.TrimSpace(s), epoch: number(m[1]), post: -1, dev: -1, local: strings.ToLower(m[10])}
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	switch strings.ToLower(m[3]) {
	case "a", "alpha":
		v.pre = [2]int{1, number(m[4])}
	case "b", "beta":
		v.pre = [2]int{2, number(m[4])}
	case "c", "rc", "pre", "preview":
		v.pre = [2]int{3, number(m[4])}
	}
	switch {
	case m[5] != "":
		v.post = number(m[5])
	case m[6] != "":
		v.post = number(m[7])
	}
	if m[8] != "" {
		v.dev = number(m[9])
	}
	return v, nil
}

// number reads digits that the form bounded; none are 0.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// String gives the version as it was written.
func (v Version) String() string { return v.text }

// Compare orders two versions: a pre-release before its release, a post-release after it.
func (v Version) Compare(o Version) int {
	return cmp.Or(v.comparePublic(o), compareLocal(v.local, o.local))
}

func (v Version) comparePublic(o Version) int {
	return cmp.Or(cmp.Compare(v.epoch, o.epoch), compareRelease(v.release, o.release),
		slices.Compare(v.preKey(), o.preKey()), cmp.Compare(v.post, o.post), cmp.Compare(v.devKey(), o.devKey()))
}

// preKey puts a development release of the release itself before its pre-releases, and the release after.
func (v Version) preKey() []int {
	switch {
	case v.pre[0] > 0:
		return v.pre[:]
	case v.post < 0 && v.dev >= 0:
		return []int{0, 0}
	}
	return []int{4, 0}
}

func (v Version) devKey() int {
	if v.dev < 0 {
		return 1 << 40
	}
	return v.dev
}

// compareRelease takes missing parts for 0: 1.0 is 1.
func compareRelease(a, b []int) int {
	for i := range max(len(a), len(b)) {
		if c := cmp.Compare(at(a, i), at(b, i)); c != 0 {
			return c
		}
	}
	return 0
}

func at(s []int, i int) int {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// compareLocal orders local labels part by part: a number is after a word.
func compareLocal(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	}
	return slices.CompareFunc(split(a), split(b), func(x, y string) int {
		n, errX := strconv.Atoi(x)
		m, errY := strconv.Atoi(y)
		switch {
		case errX == nil && errY == nil:
			return cmp.Compare(n, m)
		case errX == nil:
			return 1
		case errY == nil:
			return -1
		}
		return strings.Compare(x, y)
	})
}

// Specifier is one clause of a requirement on the version: an operator and a version.
type Specifier struct {
	Op      string // "==", "!=", "<=", ">=", "<", ">" or "~="
	Version string // with "==" and "!=" it may end in ".*"
}

// String gives the clause without spaces.
func (s Specifier) String() string { return s.Op + s.Version }

// check reports a clause that can't be judged.
func (s Specifier) check() error {
	text := s.Version
	if s.Op == "==" || s.Op == "!=" {
		text = strings.TrimSuffix(text, ".*")
	}
	v, err := ParseVersion(text)
	if err != nil {
		return err
	}
	if s.Op == "~=" && len(v.release) < 2 {
		return fmt.Errorf("~= wants a version of two parts or more, not %q", s.Version)
	}
	return nil
}

// Contains reports whether a version satisfies the clause. Pre-releases do as others: what is judged here
// was chosen already.
func (s Specifier) Contains(v Version) bool {
	prefix, wild := strings.CutSuffix(s.Version, ".*")
	want, err := ParseVersion(prefix)
	if err != nil {
		return false
	}
	if want.local == "" {
		v.local = ""
	}
	same := func() bool {
		if wild {
			return v.epoch == want.epoch && hasPrefix(v.release, want.release)
		}
		return v.Compare(want) == 0
	}
	switch s.Op {
	case "==":
		return same()
	case "!=":
		return !same()
	case "<=":
		return v.comparePublic(want) <= 0
	case ">=":
		return v.comparePublic(want) >= 0
	case "<":
		// 1.0rc1 is before 1.0 and yet not what "<1.0" means.
		return v.comparePublic(want) < 0 && !(v.isPre() && !want.isPre() && compareRelease(v.release, want.release) == 0)
	case ">":
		return v.comparePublic(want) > 0 && !(v.post >= 0 && want.post < 0 && compareRelease(v.release, want.release) == 0)
	case "~=":
		return v.comparePublic(want) >= 0 && v.epoch == want.epoch && hasPrefix(v.release, want.release[:len(want.release)-1])
	}
	return false
}

func (v Version) isPre() bool { return v.pre[0] > 0 || v.dev >= 0 }

func hasPrefix(release, prefix []int) bool {
	for i, n := range prefix {
		if at(release, i) != n {
			return false
		}
	}
	return true
}

// clip shortens text for an error.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
