package sandbox

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// wire is a string of any bytes that crosses the hand-off. JSON text is Unicode, while paths and
// arguments are bytes: a byte that is not part of valid UTF-8 is written as \xNN and a backslash
// as two, so that every path arrives as it was.
type wire string

// MarshalText implements encoding.TextMarshaler.
func (w wire) MarshalText() ([]byte, error) {
	out := make([]byte, 0, len(w))
	for rest := string(w); rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			out = fmt.Appendf(out, `\x%02x`, rest[0])
		case r == '\\':
			out = append(out, `\\`...)
		default:
			out = append(out, rest[:n]...)
		}
		rest = rest[n:]
	}
	return out, nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *wire) UnmarshalText(text []byte) error {
	var b strings.Builder
	for rest := string(text); rest != ""; {
		before, after, found := strings.Cut(rest, `\`)
		b.WriteString(before)
		if !found {
			break
		}
		switch {
		case strings.HasPrefix(after, `\`):
			b.WriteByte('\\')
			rest = after[1:]
		case len(after) >= 3 && after[0] == 'x':
			n, err := strconv.ParseUint(after[1:3], 16, 8)
			if err != nil {
				return fmt.Errorf("bad escape in %q", text)
			}
			b.WriteByte(byte(n))
			rest = after[3:]
		default:
			return fmt.Errorf("bad escape in %q", text)
		}
	}
	*w = wire(b.String())
	return nil
}

func toWire(in []string) []wire {
	out := make([]wire, len(in))
	for i, s := range in {
		out[i] = wire(s)
	}
	return out
}

func fromWire(in []wire) []string {
	out := make([]string, len(in))
	for i, w := range in {
		out[i] = string(w)
	}
	return out
}

// blob is content of any kind that crosses the hand-off: a string, so that what holds it can be compared, and in base64,
// since as text it would grow where JSON has to escape much of it.
type blob string

// MarshalText implements encoding.TextMarshaler.
func (b blob) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, []byte(b)), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *blob) UnmarshalText(text []byte) error {
	content, err := base64.StdEncoding.DecodeString(string(text))
	*b = blob(content)
	return err
}
