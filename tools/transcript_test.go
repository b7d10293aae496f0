package tools

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the transcripts and the list of tools as they are now")

// A transcript is what a client writes, and what it must get. In the part "client" each line is sent
// as it stands; a line "<" waits for one line of the server first. The part "server" is all that the
// server writes, in its order, until it ends after its input.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) != 2 || archive.Files[0].Name != "client" || archive.Files[1].Name != "server" {
				t.Fatal("not a part client and a part server")
			}
			opts := testOptions(newFakeRunner())
			opts.AskRoots = bytes.Contains(archive.Comment, []byte("roots: asked"))
			c := connect(t, New(opts))
			var got []string
			for line := range strings.Lines(string(archive.Files[0].Data)) {
				if line = strings.TrimSuffix(line, "\n"); line == "<" {
					got = append(got, c.next())
				} else {
					c.send(line)
				}
			}
			rest, err := c.rest()
			if err != nil {
				t.Error(err)
			}
			server := strings.Join(append(got, rest...), "\n") + "\n"
			if *update {
				archive.Files[1].Data = []byte(server)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(archive.Files[1].Data), server); d != "" {
				t.Errorf("the server's lines (-want +got):\n%s", d)
			}
		})
	}
}

// What a client learns of the server is a contract with the models that use it: a change of it is
// seen in review.
func TestListOfTools(t *testing.T) {
	c := connect(t, New(testOptions(newFakeRunner())))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	var initialized struct{ Result struct{ Instructions string } }
	if err := json.Unmarshal([]byte(c.next()), &initialized); err != nil {
		t.Fatal(err)
	}
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	var list struct {
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(c.next()), &list); err != nil {
		t.Fatal(err)
	}
	got := &txtar.Archive{
		Comment: []byte("What a client is told with the default configuration.\n"),
		Files:   []txtar.File{{Name: "instructions", Data: []byte(initialized.Result.Instructions)}},
	}
	for _, raw := range list.Result.Tools {
		var tool struct{ Name string }
		var text bytes.Buffer
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		if err := json.Indent(&text, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.Files = append(got.Files, txtar.File{Name: tool.Name + ".json", Data: append(text.Bytes(), '\n')})
	}
	const file = "testdata/tools.txtar"
	if *update {
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(txtar.Format(got))); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}
