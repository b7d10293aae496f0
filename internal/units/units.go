// Package units holds the two spellings of quantities that the configuration uses, sizes such as "4GiB" and
// durations such as "2m", and those that people read. It is a leaf: it imports nothing of airlock, so that every
// package can name its own configuration with it.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written as a decimal number with an optional unit: "4GiB", "512 MiB",
// "32KiB", "100" (bytes). Units are powers of 1024 (KiB, MiB, GiB, TiB) or of 1000 (kB, MB, GB, TB).
type Size int64

// sizeUnits begins with the binary units, the largest first.
var sizeUnits = []struct {
	name   string
	factor int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"kB", 1e3},
	{"KB", 1e3},
	{"B", 1},
}

// ParseSize reads a size. The error names what was read and shows a right spelling.
func ParseSize(s string) (Size, error) {
	number, factor := strings.TrimSpace(s), int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(rest), u.factor
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/factor {
		return 0, fmt.Errorf("%q is not a size; write a whole number and a unit, as in \"512MiB\" or \"4GiB\"", s)
	}
	return Size(int64(n) * factor), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Size) UnmarshalText(b []byte) error {
	v, err := ParseSize(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String gives the shortest exact spelling with a binary unit: "4GiB", "1000".
func (s Size) String() string {
	for _, u := range sizeUnits[:4] {
		if s != 0 && int64(s)%u.factor == 0 {
			return strconv.FormatInt(int64(s)/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Rounded gives a spelling for people, with one decimal of the largest binary unit that the size reaches:
// "640 B", "1.5 GiB".
func (s Size) Rounded() string {
	for _, u := range sizeUnits[:4] {
		if int64(s) >= u.factor {
			return fmt.Sprintf("%.1f %s", float64(s)/float64(u.factor), u.name)
		}
	}
	return fmt.Sprintf("%d B", int64(s))
}

// Duration is a time.Duration, written as Go and people do: "45s", "2m", "1h30m".
type Duration time.Duration

// ParseDuration reads a duration; negative ones are refused.
func ParseDuration(s string) (Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration; write a number and a unit, as in \"45s\", \"2m\" or \"1h30m\"", s)
	}
	return Duration(d), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	if err == nil {
		*d = v
	}
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Std returns the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String drops the zero units that time.Duration prints: "2m", not "2m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Counted is a number of things whose plural ends in s: "1 run", "2 runs", "2 processes".
func Counted(n int, noun string) string {
	if n != 1 {
		if strings.HasSuffix(noun, "s") {
			noun += "e"
		}
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
