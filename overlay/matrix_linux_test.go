package overlay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMatrix goes through every combination of what was at a path, what the run made of it and what
// the host did meanwhile, all of them as paths of one workspace and one run, and compares with a
// model of what is right. It does so on each filesystem, with the paths at the top and in a directory.
func TestMatrix(t *testing.T) {
	kinds := []string{"absent", "file", "dir", "link"}
	hosts := []string{"idle", "edited", "deleted", "file", "dir", "link", "same"}

	type cell struct{ before, after, host, path string }
	for fs, base := range bases(t) {
		for _, in := range []struct {
			sub, review string
			skip        bool
		}{
			{"", "", false},
			{"sub/", "", fs == "tmpfs"},
			{"", "after", fs == "tmpfs" && !*everyReview},
			{"sub/", "after", !*everyReview},
			{"", "before", !*everyReview},
		} {
			sub, review := in.sub, in.review
			if in.skip {
				continue
			}
			t.Run(fs+"/"+sub+review, func(t *testing.T) {
				var cells []cell
				var setup, script, meanwhile strings.Builder
				if sub != "" {
					setup.WriteString("mkdir sub\n")
				}
				for _, before := range kinds {
					for _, after := range append(kinds, "kept") {
						for _, host := range hosts {
							if before == "absent" && (host == "edited" || host == "deleted") {
								continue
							}
							if before == "absent" && after == "kept" || before == "link" && host == "edited" {
								continue
							}
							c := cell{before, after, host, fmt.Sprintf("%s%s-%s-%s", sub, before, after, host)}
							cells = append(cells, c)
							fmt.Fprintln(&setup, makes(before, c.path, "before"))
							// "kept" is a change that keeps the kind.
							switch {
							case after == "kept" && before == "dir":
								fmt.Fprintf(&script, "echo run > %s/f\n", c.path)
							case after == "kept" && before == "file":
								fmt.Fprintf(&script, "echo run > %s\n", c.path)
							case after == "kept":
								fmt.Fprintf(&script, "rm %s; %s\n", c.path, makes(before, c.path, "run"))
							default:
								fmt.Fprintf(&script, "rm -rf %s; %s\n", c.path, makes(after, c.path, "run"))
							}
							switch host {
							case "idle":
							case "edited":
								p := c.path
								if before == "dir" {
									p += "/f"
								}
								fmt.Fprintf(&meanwhile, "echo host > %s\n", p)
							case "deleted":
								fmt.Fprintf(&meanwhile, "rm -r %s\n", c.path)
							case "same":
								k := after
								if k == "kept" {
									k = before
								}
								fmt.Fprintf(&meanwhile, "rm -rf %s; %s\n", c.path, makes(k, c.path, "run"))
							default:
								fmt.Fprintf(&meanwhile, "rm -rf %s; %s\n", c.path, makes(host, c.path, "host"))
							}
						}
					}
				}
				f := newFixture(t, base, setup.String())
				f.review = review
				report := f.landed(script.String(), meanwhile.String())
				conflicts := map[string]string{}
				for _, c := range report.Conflicts {
					conflicts[c.Path] = c.KeptAs
				}
				for _, c := range cells {
					after := c.after
					if after == "kept" {
						after = c.before
					}
					got := look(t, filepath.Join(f.dir, c.path))
					run := state(after, "run")
					switch c.host {
					case "idle", "same":
						if got != run {
							t.Errorf("%s: got %s, want the run's %s", c.path, got, run)
						}
						for p := range conflicts {
							if p == c.path || strings.HasPrefix(p, c.path+"/") {
								t.Errorf("%s: conflict at %s", c.path, p)
							}
						}
						continue
					}
					// The host changed the path. What it made must be there.
					want := state(c.host, "host")
					switch c.host {
					case "edited":
						want = state(c.before, "host")
					case "deleted":
						want = "absent"
						if review == "" && (c.after != "kept" || c.before == "link") {
							// What the run made anew is no copy of what the host removed: it lands.
							want = run
						}
					}
					if got != want {
						t.Errorf("%s: got %s, want %s", c.path, got, want)
					}
					// And what the run made must be somewhere.
					if run != "absent" && got != run {
						if !kept(t, f.dir, c.path, run, conflicts) {
							t.Errorf("%s: the run's version is lost; conflicts %v", c.path, conflicts)
						}
					}
				}
			})
		}
	}
}

// makes is what makes a kind of thing, in words of the shell.
func makes(kind, path, content string) string {
	switch kind {
	case "file":
		return fmt.Sprintf("echo %s > %s", content, path)
	case "dir":
		return fmt.Sprintf("mkdir %s; echo %s > %s/f", path, content, path)
	case "link":
		return fmt.Sprintf("ln -s %s %s", content, path)
	}
	return ":"
}

// state is how look describes what a kind and content make.
func state(kind, content string) string {
	switch kind {
	case "absent":
		return "absent"
	case "dir":
		return "dir of " + content
	}
	return kind + " " + content
}

// look describes what is at a path.
func look(t *testing.T, path string) string {
	t.Helper()
	i, err := os.Lstat(path)
	switch {
	case os.IsNotExist(err):
		return "absent"
	case err != nil:
		t.Fatal(err)
	case i.Mode()&os.ModeSymlink != 0:
		text, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		return "link " + text
	case i.IsDir():
		b, err := os.ReadFile(path + "/f")
		if err != nil {
			return "dir without f"
		}
		return "dir of " + strings.TrimSpace(string(b))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return "file " + strings.TrimSpace(string(b))
}

// kept reports whether the run's version of path, or of what is in it, is at a conflict name that
// the report gave.
func kept(t *testing.T, dir, path, run string, conflicts map[string]string) bool {
	t.Helper()
	if as := conflicts[path]; as != "" && look(t, filepath.Join(dir, as)) == run {
		return true
	}
	as := conflicts[path+"/f"]
	return as != "" && "dir of "+strings.TrimPrefix(look(t, filepath.Join(dir, as)), "file ") == run
}
