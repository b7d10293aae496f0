package main

import (
	"errors"
	"testing"
)

func TestAllowInText(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"no file", "", "[network]\nmode = \"allowlist\"\nallow = [\"a.test\", \"b.test:22\"]\n"},
		{"another section", "[limits]\nruns = 2 # two", "[limits]\nruns = 2 # two\n\n[network]\nmode = \"allowlist\"\nallow = [\"a.test\", \"b.test:22\"]\n"},
		{
			"set", "[network]\nmode = 'deny' # for now\nallow = [\"x.test\"] # more\n\n[limits]\nruns = 2\n",
			"[network]\nmode = \"allowlist\" # for now\nallow = [\"x.test\", \"a.test\", \"b.test:22\"] # more\n\n[limits]\nruns = 2\n",
		},
		{"empty", "[network]\nallow = []\n", "[network]\nmode = \"allowlist\"\nallow = [\"a.test\", \"b.test:22\"]\n"},
		{"comma", "[network]\nmode = \"allowlist\"\nallow = ['x.test', ]\n", "[network]\nmode = \"allowlist\"\nallow = ['x.test', \"a.test\", \"b.test:22\" ]\n"},
		{
			"lines", "[network]\nmode = \"allowlist\"\nallow = [\n\t\"x.test\", # ours\n\t\"y.test\" # theirs, \"z\"\n]\n",
			"[network]\nmode = \"allowlist\"\nallow = [\n\t\"x.test\", # ours\n\t\"y.test\", # theirs, \"z\"\n\t\"a.test\",\n\t\"b.test:22\"\n]\n",
		},
		{
			"lines with a comma", "[network]\nmode = \"allowlist\"\nallow = [\n  \"x.test\",\n]\n",
			"[network]\nmode = \"allowlist\"\nallow = [\n  \"x.test\",\n  \"a.test\",\n  \"b.test:22\"\n]\n",
		},
		{
			"a comma and what is said of it", "[network]\r\nmode = \"allowlist\"\r\nallow = [\r\n  \"x.test\", # theirs\r\n]\r\n",
			"[network]\r\nmode = \"allowlist\"\r\nallow = [\r\n  \"x.test\", # theirs\r\n  \"a.test\",\r\n  \"b.test:22\"\r\n]\r\n",
		},
		{
			"nothing but a comment", "[network]\nmode = \"allowlist\"\nallow = [ # none yet\n  # to come\n]\n",
			"[network]\nmode = \"allowlist\"\nallow = [ # none yet\n    \"a.test\",\n    \"b.test:22\"\n  # to come\n]\n",
		},
		{
			"the last on the closing line", "[network]\nmode = \"allowlist\"\nallow = [\"x.test\", # one\n  \"y.test\"] # both\n",
			"[network]\nmode = \"allowlist\"\nallow = [\"x.test\", # one\n  \"y.test\",\n  \"a.test\",\n  \"b.test:22\"] # both\n",
		},
		{"other end of line", "[network]\r\ndeny = [\"d.test\"]\r\n", "[network]\r\nmode = \"allowlist\"\r\nallow = [\"a.test\", \"b.test:22\"]\r\ndeny = [\"d.test\"]\r\n"},
	} {
		got, err := allowInText([]byte(tt.before), []string{"a.test", "b.test:22"}, "allowlist")
		if err != nil || string(got) != tt.after {
			t.Errorf("%s: %v\n%q, want\n%q", tt.name, err, got, tt.after)
		}
	}
}

func TestAllowInTextByHand(t *testing.T) {
	for _, before := range []string{
		"network = {mode = \"allowlist\"}\n",
		"network.mode = \"allowlist\"\n",
		"[network]\nallow = [\"\"\"x.test\"\"\"]\n",
		"[network]\nallow = [\"x\\u002etest\"]\n",
		"[network]\n\"allow\" = [\"x.test\"]\n",
		"[network]\nmode = \"\"\"deny\"\"\"\n",
	} {
		if got, err := allowInText([]byte(before), []string{"a.test"}, "allowlist"); !errors.Is(err, errByHand) {
			t.Errorf("%q: %q, %v", before, got, err)
		}
	}
	if _, err := allowInText([]byte("[network\n"), []string{"a.test"}, "allowlist"); err == nil || errors.Is(err, errByHand) {
		t.Errorf("a broken file: %v", err)
	}
}
