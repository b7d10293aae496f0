package configmerge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var jsonValue = map[string]any{"command": "/bin/airlock", "args": []string{"serve", "<&>"}, "timeout": 3}

func asJSON(text string) (string, error) {
	out, err := JSON([]byte(text), []string{"mcpServers", "airlock"}, jsonValue)
	return string(out), err
}

const jsonBlock = `{
  "mcpServers": {
    "airlock": {
      "args": [
        "serve",
        "<&>"
      ],
      "command": "/bin/airlock",
      "timeout": 3
    }
  }
}
`

// Whatever is in a file stays as it is, to the byte.
func TestJSON(t *testing.T) {
	flat := `"airlock": {
      "args": [
        "serve",
        "<&>"
      ],
      "command": "/bin/airlock",
      "timeout": 3
    }`
	for _, tt := range []struct{ name, before, after string }{
		{"empty", "", jsonBlock},
		{"comment alone", "// mine\n", "// mine\n" + jsonBlock},
		{"no servers", "{}", strings.TrimSuffix(jsonBlock, "\n")},
		{"one line", `{"a": 1}`, "{\"a\": 1,\n  \"mcpServers\": {\n    " + flat + "\n  }\n}"},
		{
			"others, with comments",
			"// top\n{\n  \"a\": 1.50, // one\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"} // x's\n    // last\n  } /* end */\n}\n",
			"// top\n{\n  \"a\": 1.50, // one\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"}, // x's\n    // last\n    " + flat + "\n  } /* end */\n}\n",
		},
		{
			"commas at the end",
			"{\n  \"mcpServers\": {\n    \"x\": [1, 2,],\n  },\n}\n",
			"{\n  \"mcpServers\": {\n    \"x\": [1, 2,],\n    " + flat + ",\n  },\n}\n",
		},
		{
			"its own entry, with more in it",
			"{\n  \"mcpServers\": {\n    \"airlock\": {\n      \"env\": {\"A\": \"1\"}, // mine\n      \"command\": \"/old\",\n      \"args\": [\"serve\", \"<&>\"] // kept as it was written\n    },\n    \"y\": {}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"airlock\": {\n      \"env\": {\"A\": \"1\"}, // mine\n      \"command\": \"/bin/airlock\",\n      \"args\": [\"serve\", \"<&>\"], // kept as it was written\n      \"timeout\": 3\n    },\n    \"y\": {}\n  }\n}\n",
		},
		{
			"tabs and carriage returns",
			"{\r\n\t\"a\": {}\r\n}\r\n",
			"{\r\n\t\"a\": {},\r\n\t\"mcpServers\": {\r\n\t\t\"airlock\": {\r\n\t\t\t\"args\": [\r\n\t\t\t\t\"serve\",\r\n\t\t\t\t\"<&>\"\r\n\t\t\t],\r\n" +
				"\t\t\t\"command\": \"/bin/airlock\",\r\n\t\t\t\"timeout\": 3\r\n\t\t}\r\n\t}\r\n}\r\n",
		},
		{"names that need escapes", `{"mcp\u0053ervers": {}, "é": "\ud83d\ude00"}`, `{"mcp\u0053ervers": {` + "\n  " + strings.ReplaceAll(flat, "\n  ", "\n") + "\n}, \"é\": \"\\ud83d\\ude00\"}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := asJSON(tt.before)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.after, got); d != "" {
				t.Error(d)
			}
			if again, err := asJSON(got); err != nil || again != got {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

func TestJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": 1,,\n}":               `line 2: a string was expected`,
		"{\n  \"a\": tru\n}":               `line 2: a value was expected`,
		"{\"a\": 1} x":                     `line 1: there is more after the object`,
		"[1]":                              `line 1: an object was expected`,
		"{\n/* never":                      `line 2: a comment does not end`,
		"{\"a":                             `line 1: a string does not end`,
		"{\"a\": 1":                        `line 1: a comma or '}' was expected`,
		"{\"a\": \"\\x\"}":                 `line 1: a string is not valid`,
		"\xff{}":                           `line 1: it is not UTF-8`,
		`{"mcpServers": 1}`:                `"mcpServers" is there and has no room for entries`,
		`{"mcpServers": {"airlock": [1]}}`: `"mcpServers"."airlock" is there and has no room for entries`,
		`{"mcpServers": {"a": 1}, "mcpServers": {"b": 1}}`: `"mcpServers" is there twice in one object`,
		strings.Repeat(`{"a":`, 300):                       `it is nested too deep`,
		"{\"a\": 1 \"b\": 2}":                              `a comma or '}' was expected`,
		"{, \"a\": 1}":                                     `a string was expected`,
	} {
		if got, err := asJSON(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s; made %s", text, err, want, got)
		}
	}
}

func asTOML(text string) (string, error) {
	out, err := TOML([]byte(text), []string{"mcp_servers", "airlock"},
		map[string]any{"command": "/bin/airlock", "args": []any{"serve"}, "tool_timeout_sec": int64(3)},
		[]Literal{{"command", `"/bin/airlock"`}, {"args", `["serve"]`}, {"tool_timeout_sec", "3"}})
	return string(out), err
}

func TestTOML(t *testing.T) {
	const block = "[mcp_servers.airlock]\ncommand = \"/bin/airlock\"\nargs = [\"serve\"]\ntool_timeout_sec = 3\n"
	for _, tt := range []struct{ name, before, after string }{
		{"empty", "", block},
		{"others", "# mine\nmodel = \"x\" # yes\n\n[mcp_servers.x]\ncommand = 'x'", "# mine\nmodel = \"x\" # yes\n\n[mcp_servers.x]\ncommand = 'x'\n\n" + block},
		{"carriage returns", "a = 1\r\n", "a = 1\r\n\r\n" + strings.ReplaceAll(block, "\n", "\r\n")},
		{
			"its own entry, with more in it",
			"[ mcp_servers . \"airlock\" ] # here\nargs = [ # old\n  \"[#]\", 'x',\n] # after\ncommand = \"\"\"\n[a]\nb = 1\"\"\" # c\nenv = { A = \"1\" }\n# end\n\n[mcp_servers.airlock.more]\ncommand = 'y'\n[z]\n",
			"[ mcp_servers . \"airlock\" ] # here\nargs = [\"serve\"] # after\ncommand = \"/bin/airlock\" # c\nenv = { A = \"1\" }\ntool_timeout_sec = 3\n# end\n\n[mcp_servers.airlock.more]\ncommand = 'y'\n[z]\n",
		},
		{"an empty table", "[mcp_servers.airlock]", "[mcp_servers.airlock]\n" + strings.TrimSuffix(strings.TrimPrefix(block, "[mcp_servers.airlock]\n"), "\n")},
		{"dotted keys of another", "mcp_servers.x.command = 'x'\n", "mcp_servers.x.command = 'x'\n\n" + block},
		{"in one that is right", "[mcp_servers.airlock]\nargs = ['serve']\ncommand = '/bin/airlock'\ntool_timeout_sec = 0x3", "[mcp_servers.airlock]\nargs = ['serve']\ncommand = '/bin/airlock'\ntool_timeout_sec = 0x3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := asTOML(tt.before)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.after, got); d != "" {
				t.Error(d)
			}
			if again, err := asTOML(got); err != nil || again != got {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
	for text, want := range map[string]string{
		"a = 1\nb = \n":                           "line 2: ",
		"mcp_servers = { x = 1 }":                 "can't be edited safely",
		"mcp_servers = 1":                         `"mcp_servers" is there and has no room`,
		"[[mcp_servers.airlock]]":                 `"mcp_servers"."airlock" is there and has no room`,
		"mcp_servers.airlock.a = 1":               "can't be edited safely",
		"[mcp_servers]\nairlock.command = '/old'": "can't be edited safely",
	} {
		if got, err := asTOML(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s; made %s", text, err, want, got)
		}
	}
}

// A merge changes what it should and nothing else, or it is an error.
func FuzzMerge(f *testing.F) {
	for _, text := range []string{"", "{}", jsonBlock, `{"mcpServers":{"airlock":{"a":[1,],/**/},},}`, "[mcp_servers.airlock]\nargs=[\n]\n", "a.'b'=\"\"\"\n\"\"\"\"\n[[c]]\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, merge := range []func(string) (string, error){asJSON, asTOML} {
			out, err := merge(text)
			if err != nil {
				continue
			}
			if again, err := merge(out); err != nil || again != out {
				t.Errorf("%q became %q, and a second time %q, %v", text, out, again, err)
			}
		}
	})
}
