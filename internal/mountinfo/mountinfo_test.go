package mountinfo

import "testing"

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"/plain":                "/plain",
		`/a\040b\011c\012d\134`: "/a b\tc\nd\\",
		"/\xff\\040":            "/\xff ",
		`/cut\04`:               `/cut\04`,
		`/no\999`:               `/no\999`,
		`/no\400`:               `/no\400`, // more than a byte
	} {
		if got := Unescape(in); got != want {
			t.Errorf("Unescape(%q) = %q, want %q", in, got, want)
		}
	}
}
