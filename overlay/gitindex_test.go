package overlay

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestIndex: git writes the index, in each version and of each hash; what is compared are its entries.
func TestIndex(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			t.Run(format+" "+version, func(t *testing.T) {
				dir := t.TempDir()
				git := func(script string) indexDigest {
					t.Helper()
					cmd := exec.Command("/bin/sh", "-euc", script)
					cmd.Dir = dir
					cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", script, err, out)
					}
					data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
					if err != nil {
						t.Fatal(err)
					}
					d, err := readIndex(bytes.NewReader(data))
					if err != nil {
						t.Fatalf("%s: %v", script, err)
					}
					for _, broken := range [][]byte{data[:len(data)-1], data[:40], bytes.Replace(data, []byte("long"), []byte("lonG"), 1), nil} {
						if _, err := readIndex(bytes.NewReader(broken)); err == nil {
							t.Errorf("%s: a broken index was read", script)
						}
					}
					return d
				}
				long := strings.Repeat("long/", 50) + "name"
				first := git("git init -q --object-format=" + format + " .; mkdir -p " + filepath.Dir(long) + "; echo 1 > a; echo 1 > ab; echo 1 > " + long + "; git add .; git update-index --index-version " + version)
				if version == "3" {
					first = git("echo 1 > new; git add -N new") // what needs that version
				}
				if again := git("touch -d '1 hour ago' a; git update-index -q --refresh; git write-tree >/dev/null; git status >/dev/null"); again != first {
					t.Error("a refresh looks like a change")
				}
				seen := map[indexDigest]string{first: "the first"}
				for _, change := range []string{"echo 2 > a; git add a", "git rm -q --cached ab", "git update-index --chmod=+x a", "git update-index --assume-unchanged a", "git mv -f " + long + " b"} {
					d := git(change)
					if seen[d] != "" {
						t.Errorf("%s gives the same as %s", change, seen[d])
					}
					seen[d] = change
				}
			})
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("x", 60) + "\x00\x00\x00a\x00" + strings.Repeat("\x00", 20)))
	f.Fuzz(func(t *testing.T, data []byte) { readIndex(bytes.NewReader(data)) })
}

func TestRefs(t *testing.T) {
	object := strings.Repeat("0a", 20)
	refs, whole := packedRefs("# pack-refs with: peeled fully-peeled sorted \n" + object + " refs/heads/main\n^" + object + "\n" + object + " refs/../x\nshort refs/heads/y\n" + object + " refs/heads/z.lock\n" + object + " refs/tags/v1")
	if len(refs) != 2 || whole || refs["refs/heads/main"] != object || refs["refs/tags/v1"] != object {
		t.Errorf("%v", refs)
	}
	for text, want := range map[string]bool{
		"": true, "# pack-refs with: peeled\n" + object + " refs/heads/main\n^" + object + "\n": true,
		" x\n": false, "\n": false, object + " refs/heads/main": false, object + "\n": false, "^x\n": false,
	} {
		if _, whole := packedRefs(text); whole != want {
			t.Errorf("%q: whole is %v", text, whole)
		}
	}
	for text, want := range map[string]string{object + "\n": object, "ref: refs/heads/main\n": "", object + "0": "", "": ""} {
		if got := directRef(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
