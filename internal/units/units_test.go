package units

import (
	"math"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Size
		str  string
	}{
		{"0", 0, "0"},
		{"100", 100, "100"},
		{"100B", 100, "100"},
		{"32KiB", 32 << 10, "32KiB"},
		{"512 MiB", 512 << 20, "512MiB"},
		{" 4GiB ", 4 << 30, "4GiB"},
		{"2TiB", 2 << 40, "2TiB"},
		{"1kB", 1000, "1000"},
		{"1KB", 1000, "1000"},
		{"3MB", 3_000_000, "3000000"},
		{"1GB", 1_000_000_000, "1000000000"},
		{"1024MiB", 1 << 30, "1GiB"},
		{"9223372036854775807", math.MaxInt64, "9223372036854775807"},
	} {
		got, err := ParseSize(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", tt.in, got, err, tt.want)
		}
		if got.String() != tt.str {
			t.Errorf("Size(%d).String() = %q, want %q", got, got.String(), tt.str)
		}
	}
}

func TestParseSizeRefuses(t *testing.T) {
	for _, in := range []string{"", "GiB", "-1", "+1", "1.5GiB", "4gib", "4G", "1_000", "0x10", "9223372036854775808", "8388608TiB", "1 2MiB"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", in, got)
		}
	}
	_, err := ParseSize("4G")
	if want := `"4G" is not a size; write a whole number and a unit, as in "512MiB" or "4GiB"`; err == nil || err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
}

func TestSizeRounded(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0 B", 1023: "1023 B", 1 << 10: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 3 << 29: "1.5 GiB", 1 << 40: "1.0 TiB",
		math.MaxInt64: "8388608.0 TiB",
	} {
		if got := size.Rounded(); got != want {
			t.Errorf("Size(%d).Rounded() = %q, want %q", size, got, want)
		}
	}
}

func TestSizeText(t *testing.T) {
	s := Size(7)
	if err := s.UnmarshalText([]byte("many")); err == nil || s != 7 {
		t.Errorf("a bad text gives %d, %v; want an error and the value untouched", s, err)
	}
}

func TestParseDuration(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want time.Duration
		str  string
	}{
		{"0s", 0, "0s"},
		{"45s", 45 * time.Second, "45s"},
		{"2m", 2 * time.Minute, "2m"},
		{"120s", 2 * time.Minute, "2m"},
		{"1h", time.Hour, "1h"},
		{"1h30m", 90 * time.Minute, "1h30m"},
		{"1h0m5s", time.Hour + 5*time.Second, "1h0m5s"},
		{"250ms", 250 * time.Millisecond, "250ms"},
		{"10m", 10 * time.Minute, "10m"},
		{"10h", 10 * time.Hour, "10h"},
	} {
		got, err := ParseDuration(tt.in)
		if err != nil || got.Std() != tt.want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", tt.in, got.Std(), err, tt.want)
		}
		if got.String() != tt.str {
			t.Errorf("Duration(%v).String() = %q, want %q", tt.want, got.String(), tt.str)
		}
	}
	for _, in := range []string{"", "2", "-1s", "2 minutes", "1d", "9999999h"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", in, got)
		}
	}
}

// What String writes, Parse reads back as the same value.
func FuzzSize(f *testing.F) {
	f.Add("4GiB")
	f.Add("1000")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ParseSize(in)
		if err != nil {
			return
		}
		if again, err := ParseSize(s.String()); err != nil || again != s {
			t.Errorf("%q is %d, printed %q, read back %d, %v", in, s, s, again, err)
		}
	})
}

func FuzzDuration(f *testing.F) {
	f.Add("1h30m")
	f.Add("10ms")
	f.Fuzz(func(t *testing.T, in string) {
		d, err := ParseDuration(in)
		if err != nil {
			return
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%q is %d, printed %q, read back %d, %v", in, d, d, again, err)
		}
	})
}
