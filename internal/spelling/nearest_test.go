package spelling

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"network", "limits", "timeout_seconds", "wait", "AIRLOCK_NETWORK_MODE", "run", "Mode"}
	for word, want := range map[string]string{
		"netwrok":                     "network",
		"Network":                     "network",
		"net":                         "network",
		"ne":                          "",
		"limit":                       "limits",
		"tiemout_seconds":             "timeout_seconds",
		"timeout":                     "timeout_seconds",
		"wiat":                        "wait",
		"AIRLOCK_NETWROK_MODE":        "AIRLOCK_NETWORK_MODE",
		"mode":                        "Mode",
		"running":                     "run",
		"frobnicate":                  "",
		"":                            "",
		strings.Repeat("network", 10): "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestSlips(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "ab", 1}, {"abc", "axc", 1}, {"abc", "acb", 1}, {"abcd", "badc", 2}, {"kitten", "sitting", 3}} {
		if got := slips(tt.a, tt.b); got != tt.want {
			t.Errorf("slips(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := slips(tt.b, tt.a); got != tt.want {
			t.Errorf("slips(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
