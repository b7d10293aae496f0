package tools

import (
	"fmt"
	"unicode/utf8"
)

// cleaner turns the bytes that a run prints into text that a client can show: valid UTF-8, no
// control character but newline and tab, nothing that drives a terminal. It works on a stream, so
// that the result does not depend on how the bytes were cut into writes.
//
//   - A byte that is not UTF-8, or is a control character, is shown as \xNN (a C1 control as \u00NN).
//   - Escape sequences (colours, titles, cursor movement) are left out.
//   - A carriage return goes back to the start of the line: what follows replaces the line, so a
//     progress bar is folded to its last state. Before a newline it is nothing.
//   - A backspace takes back one character of the line; a bell is nothing.
type cleaner struct {
	commit func([]byte) // takes text that is final; does not keep it

	line []byte // text of the current line, which a carriage return may still take back
	back bool   // a carriage return came, and nothing after it
	part []byte // the start of a character of several bytes
	esc  escape // where in an escape sequence the next byte is
	left int    // bytes that the escape sequence may still have
}

// escape is the state within an escape sequence (ECMA-48).
type escape int

const (
	escNone         escape = iota
	escStart               // after ESC
	escIntermediate        // after ESC and an intermediate byte
	escControl             // in a control sequence, after ESC [
	escString              // in a string for the terminal, after ESC ] and its like
	escStringEnd           // in such a string, after ESC
)

const (
	// maxLine is how much of one line can still be taken back; what is longer becomes final.
	maxLine = 4 << 10
	// maxControl and maxString bound escape sequences: binary output holds accidental beginnings of
	// them, which must not swallow what comes after.
	maxControl = 64
	maxString  = 4 << 10
)

// plain marks the bytes that pass as they are.
var plain = func() (t [256]bool) {
	for c := ' '; c <= '~'; c++ {
		t[c] = true
	}
	t['\t'] = true
	return t
}()

// escapes is how each byte is shown that cannot be shown as it is.
var escapes = func() (t [256][]byte) {
	for b := range t {
		t[b] = fmt.Appendf(nil, `\x%02x`, b)
	}
	return t
}()

// write cleans p. It keeps nothing of p.
func (c *cleaner) write(p []byte) {
	for len(p) > 0 {
		if n := c.writePlain(p); n > 0 {
			p = p[n:]
			continue
		}
		if c.esc == escNone && len(c.part) == 0 && p[0] >= utf8.RuneSelf && utf8.FullRune(p) {
			p = p[c.char(p):]
			continue
		}
		c.writeByte(p[0])
		p = p[1:]
	}
}

// writePlain takes the longest beginning of p that needs no thought, and says how long it was.
func (c *cleaner) writePlain(p []byte) int {
	if c.esc != escNone || len(c.part) > 0 {
		return 0
	}
	n, whole := 0, 0 // whole: up to and with the last newline
	for n < len(p) {
		if p[n] == '\n' {
			whole = n + 1
		} else if !plain[p[n]] {
			break
		}
		n++
	}
	if n == 0 {
		return 0
	}
	if c.back && p[0] != '\n' {
		c.line = c.line[:0]
	}
	c.back = false
	if whole > 0 {
		c.flush()
		c.commit(p[:whole])
	}
	for rest := p[whole:n]; len(rest) > 0; {
		k := min(len(rest), maxLine-len(c.line))
		c.line = append(c.line, rest[:k]...)
		rest = rest[k:]
		c.bound()
	}
	return n
}

// writeByte takes one byte, whatever the state is.
func (c *cleaner) writeByte(b byte) {
	if c.esc != escNone && c.escaped(b) {
		return
	}
	if len(c.part) == 0 && b < utf8.RuneSelf {
		c.ascii(b)
		return
	}
	// The bytes of a character that is cut by the end of a write, until it is all there, or broken.
	c.part = append(c.part, b)
	for len(c.part) > 0 && utf8.FullRune(c.part) {
		part := c.part
		c.part = nil
		if part[0] < utf8.RuneSelf {
			c.writeByte(part[0]) // the byte after a broken character; it may begin an escape
			c.part = part[1:]
		} else {
			c.part = part[c.char(part):]
		}
	}
}

// char takes the first character of p, which is not ASCII and is all there or broken, and says how
// many bytes it has.
func (c *cleaner) char(p []byte) int {
	r, size := utf8.DecodeRune(p)
	switch {
	case r == utf8.RuneError && size == 1:
		c.show(escapes[p[0]])
	case r < 0xa0:
		c.show(fmt.Appendf(nil, `\u%04x`, r))
	default:
		c.show(p[:size])
	}
	return size
}

// ascii takes a byte below 0x80 outside of an escape sequence.
func (c *cleaner) ascii(b byte) {
	switch {
	case plain[b]:
		c.show([]byte{b}) // after a broken character; else writePlain takes it
	case b == '\n':
		c.back = false
		c.flush()
		c.commit([]byte{'\n'})
	case b == '\r':
		c.back = true
	case b == '\b':
		if !c.back {
			_, size := utf8.DecodeLastRune(c.line)
			c.line = c.line[:len(c.line)-size]
		}
	case b == '\a':
	case b == 0x1b:
		c.esc = escStart
	default:
		c.show(escapes[b])
	}
}

// escaped takes a byte within an escape sequence. It returns false if the sequence ended before b.
func (c *cleaner) escaped(b byte) bool {
	c.left--
	switch c.esc {
	case escStart:
		switch {
		case b == '[':
			c.esc, c.left = escControl, maxControl
		case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
			c.esc, c.left = escString, maxString
		case b >= 0x20 && b <= 0x2f:
			c.esc = escIntermediate
		case b == 0x1b:
		case b >= 0x30 && b <= 0x7e:
			c.esc = escNone
		default:
			c.esc = escNone
			return false
		}
	case escIntermediate:
		if b < 0x20 || b > 0x2f {
			c.esc = escNone
			return b >= 0x30 && b <= 0x7e
		}
	case escControl:
		if b < 0x20 || b > 0x3f || c.left <= 0 {
			c.esc = escNone
			return b >= 0x40 && b <= 0x7e
		}
	case escString:
		switch {
		case b == '\a':
			c.esc = escNone
		case b == 0x1b:
			c.esc = escStringEnd
		case b == '\n' || c.left <= 0:
			c.esc = escNone
			return false
		}
	case escStringEnd:
		if b == '\\' {
			c.esc = escNone
			return true
		}
		c.esc = escStart
		return c.escaped(b)
	}
	return true
}

// show puts text that is one character for the reader at the end of the line.
func (c *cleaner) show(text []byte) {
	if c.back {
		c.line, c.back = c.line[:0], false
	}
	c.line = append(c.line, text...)
	c.bound()
}

// bound makes a line final that has grown too long to be taken back.
func (c *cleaner) bound() {
	if len(c.line) >= maxLine {
		c.flush()
	}
}

func (c *cleaner) flush() {
	if len(c.line) > 0 {
		c.commit(c.line)
		c.line = c.line[:0]
	}
}

// pending gives the text that is not final: what it would be if nothing came any more.
func (c *cleaner) pending() []byte {
	text := append([]byte(nil), c.line...)
	if c.back && len(c.part) > 0 {
		text = text[:0]
	}
	for _, b := range c.part {
		text = append(text, escapes[b]...)
	}
	return text
}
