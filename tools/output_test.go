package tools

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"airlock/internal/units"
)

func collected(limit units.Size, writes ...string) *Output {
	o := NewOutput(limit)
	for _, w := range writes {
		_, _ = o.Write([]byte(w))
	}
	return o
}

func TestOutputIsClean(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":                    {"a\tb\nc\n", "a\tb\nc\n"},
		"no newline at the end":    {"a\nb", "a\nb"},
		"other scripts":            {"é 日本 😀\n", "é 日本 😀\n"},
		"the replacement itself":   {"\uFFFD\n", "\uFFFD\n"},
		"not UTF-8":                {"a\xff\xed\xa0\x80b\n", `a\xff\xed\xa0\x80b` + "\n"},
		"a character not finished": {"a\xe6\x97", `a\xe6\x97`},
		"ASCII in a character":     {"\xe6\x97a\n\xf0\x9f\n", `\xe6\x97a` + "\n" + `\xf0\x9f` + "\n"},
		"overlong":                 {"\xc0\xaf\n", `\xc0\xaf` + "\n"},
		"NUL and controls":         {"a\x00b\x01\x7f\x0b\x0c\n", `a\x00b\x01\x7f\x0b\x0c` + "\n"},
		"C1 controls":              {"a\u009b31mb\u0085\n", `a\u009b31mb\u0085` + "\n"},
		"colours":                  {"\x1b[1;31mred\x1b[0m\n", "red\n"},
		"title":                    {"\x1b]0;title\ax\x1b]2;t\x1b\\y\n", "xy\n"},
		"charset and keypad":       {"\x1b(B\x1b=x\x1b7\n", "x\n"},
		"cursor":                   {"\x1b[2J\x1b[1;1Hx\x1b[K\n", "x\n"},
		"an escape that breaks":    {"\x1b[31\nx\x1b\ny\n", "\nx\ny\n"},
		"an escape in an escape":   {"\x1b[3\x1b[31mx\x1b\x1b[mz\n", "xz\n"},
		"a string for ever":        {"\x1b]0;" + strings.Repeat("t", maxString+10) + "\n", strings.Repeat("t", 13) + "\n"},
		"a string to the newline":  {"\x1bPq\nnext\n", "\nnext\n"},
		"progress":                 {"get\n 1%\r 50%\r100%\ndone\n", "get\n100%\ndone\n"},
		"progress at the end":      {" 1%\r 2%\r", " 2%"},
		"CRLF":                     {"a\r\nb\r\r\n", "a\nb\n"},
		"spinner":                  {"x-\b\\\b|\b\n", "x\n"},
		"backspace at the start":   {"\b\b\na\b\bb\n", "\nb\n"},
		"backspace of a character": {"日\b本\n", "本\n"},
		"overstrike and bell":      {"_\bN_\bA\a\n", "NA\n"},
		"colours in progress":      {"\x1b[32m1%\x1b[0m\r\x1b[32m2%\x1b[0m\r\n", "2%\n"},
		"broken progress":          {"abc\r\xff", `\xff`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := collected(32<<10, c.in).String(); got != c.want {
				t.Errorf("%q gives %q, want %q", c.in, got, c.want)
			}
			byByte := collected(32<<10, strings.Split(c.in, "")...)
			if strings.ToValidUTF8(c.in, "") == c.in && byByte.String() != c.want {
				t.Errorf("in small writes %q gives %q, want %q", c.in, byByte, c.want)
			}
		})
	}
}

func TestOutputKeepsHeadAndTail(t *testing.T) {
	o := NewOutput(2 << 10)
	total := 0
	for i := range 100_000 {
		n, _ := fmt.Fprintf(o, "line %d\n", i)
		total += n
	}
	text, dropped := o.Snapshot()
	head, rest, found := strings.Cut(text, "\n… ")
	if !found || !strings.HasPrefix(head, "line 0\nline 1\n") || !strings.HasSuffix(rest, "\nline 99998\nline 99999\n") {
		t.Errorf("kept %q", text)
	}
	mark, tail, _ := strings.Cut(rest, "\n")
	if want := grouped(dropped) + " bytes dropped (limits.output is 2KiB) …"; mark != want {
		t.Errorf("the mark is %q, want %q", mark, want)
	}
	shown := len(head) + len(tail)
	if int64(total)-dropped != int64(shown) && int64(total)-dropped != int64(shown)+1 { // the head's own newline
		t.Errorf("%d bytes came, %d were dropped, %d are shown", total, dropped, shown)
	}
	if shown > 2<<10 {
		t.Errorf("%d bytes are shown", shown)
	}
}

func TestOutputAtItsLimit(t *testing.T) {
	for n := 2040; n < 2060; n++ {
		text, dropped := collected(2<<10, strings.Repeat("x", n)).Snapshot()
		if n <= 2048 && (text != strings.Repeat("x", n) || dropped != 0) {
			t.Errorf("of %d bytes %d were dropped", n, dropped)
		}
		if n > 2048 && dropped != int64(n-2048) {
			t.Errorf("of %d bytes %d were dropped", n, dropped)
		}
	}
}

func TestOutputSplitsNoCharacter(t *testing.T) {
	for _, c := range []string{"é", "日", "😀"} {
		for shift := range 4 {
			text, _ := collected(1<<10, strings.Repeat("x", shift), strings.Repeat(c, 3000)).Snapshot()
			if !utf8.ValidString(text) || strings.Contains(text, `\x`) {
				t.Errorf("%s shifted by %d: %q", c, shift, text)
			}
		}
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := NewOutput(4 << 10)
	chunk := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{1})
	for range 8 {
		_, _ = r.Read(chunk)
		_, _ = o.Write(chunk)
	}
	_, _ = o.Write(bytes.Repeat([]byte("x"), 10<<20)) // one line
	if kept := cap(o.head) + cap(o.tail.buf) + cap(o.clean.line) + cap(o.last); kept > 32<<10 {
		t.Errorf("%d bytes are held", kept)
	}
	if text := o.String(); len(text) > 4<<10+100 || !utf8.ValidString(text) {
		t.Errorf("%d bytes are shown", len(text))
	}
}

func TestLastLine(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":       {"", ""},
		"whole":         {"a\nb\n", "b"},
		"begun":         {"a\nb", "b"},
		"blank after":   {"a\n\n  \n", "a"},
		"progress":      {"a\n1%\r2%\r", "2%"},
		"long":          {strings.Repeat("é", 300) + "\n", strings.Repeat("é", 199) + "…"},
		"long, begun":   {strings.Repeat("é", 300), strings.Repeat("é", 199) + "…"},
		"just fits":     {strings.Repeat("é", 200), strings.Repeat("é", 200)},
		"spaces around": {"  a b \t\n", "a b"},
	} {
		if got := collected(1<<10, c.in).LastLine(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whatever comes, the text is valid and bounded, and does not depend on how it came.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("a\x00b\xff\xed\xa0\x80\x1b[31mr\r99%\r100%\n"), uint8(1), uint16(0))
	f.Add([]byte(strings.Repeat("日本\b\r\n\x1b]x\x1b", 400)), uint8(7), uint16(100))
	f.Fuzz(func(t *testing.T, in []byte, step uint8, more uint16) {
		if len(in) > 1<<10 {
			return
		}
		in = bytes.Repeat(in, 1+int(more%16)) // so that lines, strings and the whole reach their bounds
		whole := NewOutput(1 << 10)
		_, _ = whole.Write(in)
		parts := NewOutput(1 << 10)
		for rest := in; len(rest) > 0; {
			n := min(len(rest), 1+int(step))
			_, _ = parts.Write(rest[:n])
			rest = rest[n:]
			if len(rest)%97 == 0 { // looking changes nothing
				_, _ = parts.Snapshot()
				_ = parts.LastLine()
			}
		}
		text, dropped := whole.Snapshot()
		if other, d := parts.Snapshot(); other != text || d != dropped {
			t.Fatalf("in writes of %d: %q (%d), at once: %q (%d)", 1+int(step), other, d, text, dropped)
		}
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		if i := strings.IndexFunc(text, func(c rune) bool { return c != '\n' && c != '\t' && (c < ' ' || c >= 0x7f && c < 0xa0) }); i >= 0 {
			t.Fatalf("a control character at %d of %q", i, text)
		}
		if len(text) > 1<<10+100 {
			t.Fatalf("%d bytes", len(text))
		}
		if line := whole.LastLine(); utf8.RuneCountInString(line) > maxLastLine || strings.Contains(line, "\n") || !utf8.ValidString(line) {
			t.Fatalf("last line: %q", line)
		}
	})
}

func BenchmarkOutput(b *testing.B) {
	for name, chunk := range map[string][]byte{
		"lines": bytes.Repeat([]byte("abcdefghij\n"), 3000),
		"zero":  make([]byte, 32<<10),
		"text":  bytes.Repeat([]byte("日本語のテキスト\n"), 1200),
	} {
		b.Run(name, func(b *testing.B) {
			o := NewOutput(32 << 10)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				_, _ = o.Write(chunk)
			}
		})
	}
}
