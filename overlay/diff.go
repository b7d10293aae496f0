package overlay

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// diffLimit is the largest file that is compared line by line, in bytes, and diffEdits bounds how hard
// it is looked for the shortest way: beyond that a hunk removes the old lines and adds the new.
const (
	diffLimit = 4 << 20
	diffEdits = 1500
)

// contextLines is how many unchanged lines a hunk shows around a change.
const contextLines = 3

// isText reports whether content can be shown line by line. As with git, a NUL near the beginning
// makes it binary.
func isText(content []byte) bool { return bytes.IndexByte(content[:min(len(content), 8000)], 0) < 0 }

// unified writes the hunks that make b of a, in the form of diff -u, without the header. Control
// characters but tabs are escaped: what they would do to a terminal is not up to a run.
func unified(out *strings.Builder, a, b []byte) {
	x, y := splitLines(a), splitLines(b)
	for _, h := range hunks(x, y) {
		fmt.Fprintf(out, "@@ -%s +%s @@\n", span(h.a, h.aEnd), span(h.b, h.bEnd))
		for _, e := range h.edits {
			switch {
			case e.a < 0:
				writeLine(out, '+', y[e.b])
			case e.b < 0:
				writeLine(out, '-', x[e.a])
			default:
				writeLine(out, ' ', x[e.a])
			}
		}
	}
}

// splitLines keeps the newlines.
func splitLines(text []byte) [][]byte { return slices.Collect(bytes.Lines(text)) }

// span is how a hunk's header writes a range of lines.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return strconv.Itoa(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLine(out *strings.Builder, mark byte, line []byte) {
	out.WriteByte(mark)
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == '\t' || strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			out.Write(text[:n])
		} else {
			q := strconv.Quote(string(text[:n]))
			out.WriteString(q[1 : len(q)-1])
		}
		text = text[n:]
	}
	out.WriteByte('\n')
	if !ended {
		out.WriteString("\\ No newline at end of file\n")
	}
}

// edit is one line of a hunk: of a, of b, or of both. The other is -1.
type edit struct{ a, b int }

// hunk is a run of edits with what is around it: lines a to aEnd of one and b to bEnd of the other.
type hunk struct {
	a, aEnd, b, bEnd int
	edits            []edit
}

func hunks(x, y [][]byte) []hunk {
	var all []hunk
	edits := editScript(x, y)
	for i := 0; i < len(edits); {
		if edits[i].a >= 0 && edits[i].b >= 0 {
			i++
			continue
		}
		start, end := max(0, i-contextLines), i
		for same := 0; end < len(edits) && same <= 2*contextLines; end++ {
			if same++; edits[end].a < 0 || edits[end].b < 0 {
				same = 0
				i = end + 1
			}
		}
		end = min(len(edits), i+contextLines)
		all = append(all, newHunk(edits, start, end))
		i = end
	}
	return all
}

func newHunk(edits []edit, start, end int) hunk {
	var h hunk
	for _, e := range edits[:start] {
		if e.a >= 0 {
			h.a++
		}
		if e.b >= 0 {
			h.b++
		}
	}
	h.aEnd, h.bEnd, h.edits = h.a, h.b, edits[start:end]
	for _, e := range h.edits {
		if e.a >= 0 {
			h.aEnd++
		}
		if e.b >= 0 {
			h.bEnd++
		}
	}
	return h
}

// editScript is the shortest way from x to y: lines kept, removed and added, in order (Myers, "An O(ND)
// difference algorithm and its variations", 1986).
func editScript(x, y [][]byte) []edit {
	var head, tail []edit
	from := 0
	for from < len(x) && from < len(y) && bytes.Equal(x[from], y[from]) {
		head = append(head, edit{from, from})
		from++
	}
	xEnd, yEnd := len(x), len(y)
	for xEnd > from && yEnd > from && bytes.Equal(x[xEnd-1], y[yEnd-1]) {
		xEnd--
		yEnd--
	}
	for i := range len(x) - xEnd {
		tail = append(tail, edit{xEnd + i, yEnd + i})
	}
	middle := shortest(x[from:xEnd], y[from:yEnd])
	for i := range middle {
		if middle[i].a >= 0 {
			middle[i].a += from
		}
		if middle[i].b >= 0 {
			middle[i].b += from
		}
	}
	return append(append(head, middle...), tail...)
}

func shortest(x, y [][]byte) []edit {
	n, m := len(x), len(y)
	most := min(n+m, diffEdits)
	v := make([]int, 2*most+2)
	var trace [][]int
	for d := 0; d <= most; d++ {
		trace = append(trace, diagonals(v, most, d))
		for k := -d; k <= d; k += 2 {
			var i int
			if k == -d || k != d && v[most+k-1] < v[most+k+1] {
				i = v[most+k+1]
			} else {
				i = v[most+k-1] + 1
			}
			j := i - k
			for i < n && j < m && bytes.Equal(x[i], y[j]) {
				i++
				j++
			}
			v[most+k] = i
			if i >= n && j >= m {
				return backtrack(trace, n, m)
			}
		}
	}
	// Too different to be worth the search.
	var all []edit
	for i := range n {
		all = append(all, edit{i, -1})
	}
	for j := range m {
		all = append(all, edit{-1, j})
	}
	return all
}

// diagonals copies of v what step d looks at: the diagonals -d-1 to d+1, at the indices 0 to 2d+2.
func diagonals(v []int, middle, d int) []int {
	row := make([]int, 2*d+3)
	for k := -d - 1; k <= d+1; k++ {
		if i := middle + k; i >= 0 && i < len(v) {
			row[k+d+1] = v[i]
		}
	}
	return row
}

// backtrack follows the furthest points back from the end.
func backtrack(trace [][]int, n, m int) []edit {
	var reversed []edit
	i, j := n, m
	for d := len(trace) - 1; d >= 0; d-- {
		at := func(k int) int { return trace[d][k+d+1] }
		k := i - j
		var previous int
		if k == -d || k != d && at(k-1) < at(k+1) {
			previous = k + 1
		} else {
			previous = k - 1
		}
		pi := at(previous)
		pj := pi - previous
		if d == 0 {
			pi, pj = 0, 0
		}
		for i > pi && j > pj {
			i--
			j--
			reversed = append(reversed, edit{i, j})
		}
		if d > 0 {
			if i == pi {
				j--
				reversed = append(reversed, edit{-1, j})
			} else {
				i--
				reversed = append(reversed, edit{i, -1})
			}
		}
	}
	slices.Reverse(reversed)
	return reversed
}
