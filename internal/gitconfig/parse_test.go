package gitconfig

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// asGit gives the entries as git config --list -z does.
func asGit(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.name())
		if !e.Implicit {
			b.WriteString("\n" + e.Value)
		}
		b.WriteByte(0)
	}
	return b.String()
}

// gitReads asks git for the variables of a file; ok is false where git refuses it.
func gitReads(t *testing.T, text []byte) (list string, ok bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "config", "--no-includes", "--list", "-z", "--file", file)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.Output()
	return string(out), err == nil
}

func requireGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here to compare with")
	}
}

// samples are what git writes, what people write, and what is meant to be read in two ways.
var samples = []string{
	"",
	"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
	"[remote \"origin\"]\n\turl = git@example.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
	"[a]b=c\n[A]B=d;x\n[a \"X\"] k\n", "[core] bare = true", "[a]\nb = \"x # y\" z # c\n", "[a]\nb = x \\\n  y\n", "[a]\nb = x\\\"y\\\\z\\tq\\nr\\bs\n",
	"[a]\nb =   \t  x  y   \t\n", "[a \"s\\\"u\\\\b\\x\"]\nk=v\n", "[a]\nk = \"open\n", "[a]\nk=v\\", "[a]\nk = \\q\n", "[a.b]\nk=v\n", "[a \"\"]\nk=v\n", "[]\nk=v\n", "k=v\n",
	"[a]\nk = x\ty\n", "[a]\r\nk = v\r\n", "[a]\nk = a\x00b\n", "\xef\xbb\xbf[a]\nk=v\n", "[a]\nk ; c\n", "[a]\n1k=v\n", "[a]\nk-1=v\n", "[a-1]\nk=v\n", "[a\nk=v\n", "[a ]\nk=v\n", "[a \"x\" ]\nk=v\n",
	"[a]\nk = \"\" x\n", "[a]\nk = \"  x\"  \n", "[a]\nk = \\\n\\\n", "[a]\nk = x # y\\\nz = 1\n", "[a]\nk = \"a\\\nb\"\n", "# c\\\n[a]\nk=v\n", "[a]k\n", "[a]k", "[a]k=", "[a] # c\nk = \xff\xfe\n", "[a]\nk=v\n\n[include]\npath=/x\n",
	"[a]\nk==v\n", "[a]\nk = 'x' y\n", "[a]#\n", "[a]\nk=v ;\n", "[a]\nk=\"v\";x\n",
}

// agree checks that git reads what the parser takes, and reads it alike.
func agree(t *testing.T, text []byte) (taken bool) {
	t.Helper()
	entries, err := Parse(text)
	if err != nil {
		return false
	}
	want, ok := gitReads(t, text)
	if !ok {
		t.Errorf("git refuses what was taken: %q", text)
	} else if got := asGit(entries); got != want {
		t.Errorf("%q\nours  %q\ngit's %q", text, got, want)
	}
	return true
}

func TestParseAgreesWithGit(t *testing.T) {
	requireGit(t)
	taken := 0
	for _, text := range samples {
		if agree(t, []byte(text)) {
			taken++
		}
	}
	if taken < 20 {
		t.Errorf("only %d of the samples were taken", taken)
	}
	for _, refused := range []string{
		"\xef\xbb\xbf[a]\nk=v\n", "[a]\r\nk=v\n", "[a]\nk=a\x00b\n", "[a.b]\nk=v\n", "[a]\nk = x\ty\n", "[a]\nk = \"open\n", "k=v\n", "[a]\nk = \\q\n",
		"[a]\nk=v\n" + strings.Repeat("#", MaxSize),
	} {
		if entries, err := Parse([]byte(refused)); err == nil {
			t.Errorf("%.20q was taken as %v", refused, entries)
		}
	}
}

// TestParseWhatGitWrote: whatever git config itself writes is taken.
func TestParseWhatGitWrote(t *testing.T) {
	requireGit(t)
	file := filepath.Join(t.TempDir(), "config")
	for _, args := range [][]string{
		{"user.name", "A \"b\" \\ c; #d"},
		{"branch.fea/ture.remote", "origin"},
		{"branch.we\"ird\\.description", "one\ntwo\tthree "},
		{"--add", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"},
		{"--add", "remote.origin.fetch", "+refs/tags/*:refs/tags/*"},
		{"user.email", " x "},
	} {
		if out, err := exec.Command("git", append([]string{"config", "--file", file}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", args, out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !agree(t, text) {
		t.Errorf("refused:\n%s", text)
	}
}

// FuzzParse looks for a text that git reads in another way. Git is started for what the parser takes only.
func FuzzParse(f *testing.F) {
	requireGit(f)
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 || bytes.IndexByte(text, 0) >= 0 {
			return
		}
		agree(t, text)
	})
}

func TestLines(t *testing.T) {
	_, err := Parse([]byte("[a]\n# c\nk = v \\\n w\n[b.c]\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "line 5: ") {
		t.Errorf("got %v", err)
	}
	entries, err := Parse([]byte("[a]\nk = v\n"))
	if want := []Entry{{Section: "a", Key: "k", Value: "v"}}; err != nil || !slices.Equal(entries, want) {
		t.Errorf("got %v, %v", entries, err)
	}
}
