package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// columns is how wide the terminal is that standard output is, 0 if it is none or does not say.
func (a app) columns() int { return columnsOf(a.stdout) }

func columnsOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	return terminalColumns(f)
}

// fold breaks the lines of text that are longer than a terminal of that many columns at their spaces. What follows stands
// under the line's text: as far in as the line is, or by hang where it isn't. 0 columns break nothing.
func fold(text string, columns, hang int) string {
	if columns <= 2*hang {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		begin := len(line) - len(strings.TrimLeft(line, " ")) // the first column of a word
		indent := begin
		if indent == 0 {
			indent = hang
		}
		at := 0      // the column
		blanks := "" // what is between the last word and the next, unless the line ends there
		for i, word := range strings.SplitAfter(line, " ") {
			width := visible(strings.TrimRight(word, " \n"))
			if i > 0 && width > 0 && at > begin && at+width > columns {
				blanks = "\n" + strings.Repeat(" ", indent)
				at, begin = indent, indent
			}
			b.WriteString(blanks + strings.TrimSuffix(word, " "))
			blanks = word[len(strings.TrimSuffix(word, " ")):]
			at += visible(strings.TrimSuffix(word, "\n"))
		}
	}
	return b.String()
}

// visible is how many columns a text takes, in which colours take none.
func visible(text string) int {
	n := 0
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			_, text, _ = strings.Cut(rest, "m")
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n++
	}
	return n
}

// cutTo cuts a text to so many columns; with fewer than a few it stays.
func cutTo(text string, columns int) string {
	if runes := []rune(text); columns >= 8 && len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return text
}
