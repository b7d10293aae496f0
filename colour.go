package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
)

// Colours, as a terminal's own palette has them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	bold   = "1"
)

// paint colours a text, or leaves it as it is.
type paint bool

// paint says whether standard output takes colours: it is a terminal, and NO_COLOR and TERM don't forbid them.
func (a app) paint() paint {
	f, ok := a.stdout.(*os.File)
	if !ok || lookup(a.environ, "NO_COLOR") != "" || lookup(a.environ, "TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// in colours a text, which has no line breaks.
func (p paint) in(colour, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// diff is w, or a writer to it that colours the lines of a unified diff. Its close writes what is left.
func (p paint) diff(w io.Writer) (out io.Writer, close func() error) {
	if !p {
		return w, func() error { return nil }
	}
	d := &diffPainter{paint: p, to: w}
	return d, func() error {
		if len(d.rest) == 0 {
			return nil
		}
		_, err := w.Write(d.rest)
		return err
	}
}

// diffPainter colours whole lines.
type diffPainter struct {
	paint
	to   io.Writer
	rest []byte // of a line that has no end yet
}

// Write implements [io.Writer].
func (d *diffPainter) Write(b []byte) (int, error) {
	d.rest = append(d.rest, b...)
	var out []byte
	for {
		line, rest, ended := bytes.Cut(d.rest, []byte("\n"))
		if !ended {
			break
		}
		out = append(out, d.line(string(line))...)
		out = append(out, '\n')
		d.rest = rest
	}
	if _, err := d.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (d *diffPainter) line(line string) string {
	for _, kind := range []struct{ prefix, colour string }{{"+++ ", bold}, {"--- ", bold}, {"+", green}, {"-", red}, {"@@", cyan}} {
		if len(line) >= len(kind.prefix) && line[:len(kind.prefix)] == kind.prefix {
			return d.in(kind.colour, line)
		}
	}
	return line
}

// printJSON writes one document for a script.
func printJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(document)
}
