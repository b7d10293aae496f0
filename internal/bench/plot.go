package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// panel is a plot of series over a logarithmic axis.
type panel struct {
	title, axis string
	series      []series
}

// The layout, in the units of the drawing.
const (
	panelWidth, panelHeight          = 420.0, 320.0
	left, right, above, below        = 62.0, 16.0, 34.0, 46.0
	lowest, highest                  = 1.0, 10_000.0 // of the axis of times, in milliseconds
	plotWidth, plotHeight            = panelWidth - left - right, panelHeight - above - below
	ink, faint, background           = "#333", "#ddd", "#fff"
	titleSize, labelSize, lineOfName = 13, 11, 15.0
)

// colors can be told apart in print and by those who see fewer of them.
var colors = []string{"#0072b2", "#999", "#d55e00"}

// draw gives the panels beside each other, as SVG.
func draw(panels []panel) string {
	var b strings.Builder
	width := panelWidth * float64(len(panels))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="%d" fill="%s">`+"\n", width, panelHeight, labelSize, ink)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="%s"/>`+"\n", width, panelHeight, background)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%g 0)">`+"\n", panelWidth*float64(i))
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p panel) draw(b *strings.Builder) {
	first, last := p.bounds()
	x := func(v int) float64 {
		return left + plotWidth*math.Log10(float64(v)/float64(first))/math.Log10(float64(last)/float64(first))
	}
	y := func(d time.Duration) float64 {
		ms := min(max(float64(d.Microseconds())/1000, lowest), highest)
		return above + plotHeight*(1-math.Log10(ms/lowest)/math.Log10(highest/lowest))
	}
	fmt.Fprintf(b, `<text x="%g" y="18" font-size="%d" font-weight="bold">%s</text>`+"\n", left, titleSize, p.title)
	for ms := lowest; ms <= highest; ms *= 10 {
		at := y(time.Duration(ms * float64(time.Millisecond)))
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%.1f" y2="%.1f" stroke="%s"/>`+"\n", left, left+plotWidth, at, at, faint)
		fmt.Fprintf(b, `<text x="%g" y="%.1f" text-anchor="end">%g ms</text>`+"\n", left-6, at+4, ms)
	}
	for v := first; v <= last; v *= 10 {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%g" y2="%g" stroke="%s"/>`+"\n", x(v), x(v), above, above+plotHeight, faint)
		fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`+"\n", x(v), above+plotHeight+16, thousands(v))
	}
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">%s</text>`+"\n", left+plotWidth/2, panelHeight-10, p.axis)
	for i, s := range p.series {
		var line []string
		for _, pt := range s.points {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x(pt.x), y(pt.mid)))
			fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="3" opacity="0.4"/>`+"\n", x(pt.x), x(pt.x), y(pt.low), y(pt.high), colors[i])
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(line, " "), colors[i])
		at := above + 12 + lineOfName*float64(i)
		fmt.Fprintf(b, `<line x1="%g" x2="%g" y1="%g" y2="%g" stroke="%s" stroke-width="2"/>`+"\n", left+10, left+30, at, at, colors[i])
		fmt.Fprintf(b, `<text x="%g" y="%g">%s</text>`+"\n", left+36, at+4, s.name)
	}
}

// bounds are the first and the last number on the axis.
func (p panel) bounds() (first, last int) {
	first = math.MaxInt
	for _, s := range p.series {
		for _, pt := range s.points {
			first, last = min(first, pt.x), max(last, pt.x)
		}
	}
	return first, last
}

// thousands writes a number with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
