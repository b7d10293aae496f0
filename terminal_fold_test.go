package main

import "testing"

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"one two three four\n", 0, "one two three four\n"},
		{"one two three four\n", 18, "one two three four\n"},
		{"one two three four\n", 17, "one two three\n    four\n"},
		{"  one two three\n  x\n", 9, "  one two\n  three\n  x\n"},
		{"\x1b[32mone\x1b[0m two three\n", 13, "\x1b[32mone\x1b[0m two three\n"},
		{"one two  three \n", 9, "one two \n    three \n"},
		{"ööö öö ö\n", 9, "ööö öö ö\n"},
		{"one averylongwordthatfitsnowhere\n", 12, "one\n    averylongwordthatfitsnowhere\n"},
	} {
		if got := fold(c.text, c.columns, 4); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
	if got := cutTo("run_shell: echo ö", 16); got != "run_shell: echo…" {
		t.Errorf("cut: %q", got)
	}
}
