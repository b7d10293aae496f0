package tools

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"airlock/internal/units"
)

// Output collects what a run prints, within bounds: of a long output it keeps the beginning and the
// end, half of the limit each, and counts what it dropped between them. It takes whatever comes, at
// any length, without blocking or growing, and gives text that a client can show (see [cleaner]).
//
// It is written by one goroutine and may be read by others meanwhile.
type Output struct {
	limit units.Size

	mu    sync.Mutex
	clean cleaner
	head  []byte
	tail  ring
	total int64  // bytes of final text so far, kept or not
	last  []byte // the last line of final text that was not blank
	whole keptText
}

// maxLastLine is how many characters of a line progress shows.
const maxLastLine = 200

// NewOutput makes an Output that keeps limit bytes of text.
func NewOutput(limit units.Size) *Output {
	o := &Output{limit: limit}
	o.tail.size = int(limit) - o.headSize()
	o.clean.commit = o.commit
	return o
}

func (o *Output) headSize() int { return int(o.limit) / 2 }

// Write takes the next bytes of the output. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clean.write(p)
	return len(p), nil
}

// commit takes text that is final.
func (o *Output) commit(text []byte) {
	if o.total += int64(len(text)); o.total > int64(o.limit) {
		o.whole.add(text, func() []byte { return append(bytes.Clone(o.head), o.tail.bytes()...) })
	}
	o.remember(text)
	if room := o.headSize() - len(o.head); room > 0 {
		n := min(room, len(text))
		o.head = append(o.head, text[:n]...)
		text = text[n:]
	}
	o.tail.write(text)
}

// remember keeps the last line of text for [Output.LastLine], unless it is blank.
func (o *Output) remember(text []byte) {
	text = bytes.TrimRight(text, " \t\n")
	if len(text) == 0 {
		return
	}
	line := text[bytes.LastIndexByte(text, '\n')+1:]
	o.last = append(o.last[:0], line[:min(len(line), maxLastLine*utf8.UTFMax)]...)
}

// Snapshot gives the output as it is now, and how many bytes of text were dropped from its middle,
// where a line of its own says so and names the limit.
func (o *Output) Snapshot() (text string, dropped int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pending := o.clean.pending()
	head, tail := o.head, append(o.tail.bytes(), pending...)
	if room := o.headSize() - len(head); room > 0 { // then the tail held nothing before
		n := min(room, len(tail))
		head, tail = append(bytes.Clone(head), tail[:n]...), tail[n:]
	}
	return o.clipped(head, tail, o.total+int64(len(pending)))
}

// clipped joins the beginning and the end of a text of size bytes, with a line between them that says how many
// are missing.
func (o *Output) clipped(head, tail []byte, size int64) (text string, dropped int64) {
	if len(tail) > o.tail.size {
		tail = tail[len(tail)-o.tail.size:]
	}
	dropped = size - int64(len(head)+len(tail))
	if dropped == 0 {
		return string(head) + string(tail), 0
	}
	whole := wholeEnd(head)
	dropped += int64(len(head) - len(whole))
	head = whole
	whole = wholeStart(tail)
	dropped += int64(len(tail) - len(whole))
	tail = whole

	var b strings.Builder
	b.Write(head)
	if len(head) > 0 && head[len(head)-1] != '\n' {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "… %s bytes dropped (limits.output is %s) …\n", grouped(dropped), o.limit)
	b.Write(tail)
	return b.String(), dropped
}

// String gives the text of [Output.Snapshot].
func (o *Output) String() string {
	text, _ := o.Snapshot()
	return text
}

// LastLine gives the last line that is not blank, of at most 200 characters, for progress.
func (o *Output) LastLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := o.last
	if current := bytes.TrimSpace(o.clean.line); len(current) > 0 {
		line = current
	}
	return firstChars(strings.TrimSpace(string(wholeEnd(line))), maxLastLine)
}

// wholeEnd cuts a character off the end of text that is not all there. Text is otherwise valid.
func wholeEnd(text []byte) []byte {
	for i := len(text) - 1; i >= 0 && i >= len(text)-utf8.UTFMax; i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return text[:i]
			}
			break
		}
	}
	return text
}

// wholeStart cuts the rest of a character off the start of text. Text is otherwise valid.
func wholeStart(text []byte) []byte {
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// firstChars gives the first n characters of s, the last of them "…" if there are more.
func firstChars(s string, n int) string {
	count := 0
	cut := 0
	for i := range s {
		if count == n-1 {
			cut = i
		}
		if count++; count > n {
			return s[:cut] + "…"
		}
	}
	return s
}

// grouped writes n with commas: 2,991,808.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
