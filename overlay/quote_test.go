package overlay

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuote(t *testing.T) {
	long := strings.Repeat("é", 150)
	for _, tt := range []struct{ path, want string }{
		{"a.txt", "a.txt"},
		{"Copy (1) of ü, x.txt", "Copy (1) of ü, x.txt"},
		{`back\slash`, `back\slash`},
		{"", `""`},
		{"a\nexit=0", `"a\nexit=0"`},
		{`"q"`, `"\"q\""`},
		{"\xff\xfe", `"\xff\xfe"`},
		{"a\u202eb", `"a\u202eb"`},
		{"\x1b[31m", `"\x1b[31m"`},
		{long, `"` + long[:194] + `"…`},
		{strings.Repeat("x", 200), strings.Repeat("x", 200)},
	} {
		if got := Quote(tt.path); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.path, got, tt.want)
		}
	}
}

// FuzzQuote: every result is one printable line of at most 200 bytes, and gives the path back.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"a", "a\nb", "\xff", `"`, "\u202e", strings.Repeat("\x00", 99), "é\\", "x…", `"…`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		q := Quote(path)
		if !utf8.ValidString(q) || len(q) > quoteLimit {
			t.Fatalf("%q of %d bytes", q, len(q))
		}
		for _, r := range q {
			if !strconv.IsPrint(r) {
				t.Fatalf("%q holds %U", q, r)
			}
		}
		switch cut := strings.HasSuffix(q, `"`+cutMark); {
		case !strings.HasPrefix(q, `"`):
			if q != path {
				t.Fatalf("%q became %q", path, q)
			}
		case cut:
			begin, err := strconv.Unquote(strings.TrimSuffix(q, cutMark))
			if err != nil || !strings.HasPrefix(path, begin) || begin == path {
				t.Fatalf("%q was cut to %q", path, q)
			}
		default:
			if back, err := strconv.Unquote(q); err != nil || back != path {
				t.Fatalf("%q became %q, which is %q", path, q, back)
			}
		}
	})
}
