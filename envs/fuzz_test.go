package envs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is taken for a requirement is written anew for an installer, and means the same there: one line that begins with
// the name, and without what would make an installer read anything but its index.
func FuzzRequirement(f *testing.F) {
	for _, s := range []string{"six", "Zope.Interface[b,a] >= 1.0, != 2.*; python_version > \"2\" and (os_name == 'x' or extra in 'y')", "x~=1.0", "x==1!2.0rc1.post2.dev3+a-b", "x @ file:///x", "-r x", "x\n--pre", "jsonlite (>= 1.8)", "a" + strings.Repeat("(", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, language := range []string{LanguagePython, LanguageR} {
			r, err := parseIn(language, s)
			if err != nil {
				continue
			}
			text := r.String()
			name, _, _ := strings.Cut(text, "[")
			if again, err := parseIn(language, text); err != nil || again.String() != text || again.Name != r.Name {
				t.Errorf("%q is written as %q, which is %q, %v", s, text, again, err)
			}
			if strings.ContainsAny(text, "\n\r\x00#@/\\$`") || !strings.HasPrefix(name, r.Name) || r.Name == "" || strings.HasPrefix(r.Name, "-") {
				t.Errorf("%q is written as %q", s, text)
			}
			if language == LanguagePython && NormalizeName(r.Name) != r.Name {
				t.Errorf("%q has the name %q", s, r.Name)
			}
			for _, v := range []string{"1.0", "2.0.post1", "x"} {
				if again, _ := parseIn(language, text); again.Contains(v) != r.Contains(v) {
					t.Errorf("%q and %q differ about %s", s, text, v)
				}
			}
			r.Marker.Holds(map[string]string{"python_version": "3.11", "extra": ""})
		}
		if v, err := ParseVersion(s); err == nil && v.Compare(v) != 0 {
			t.Errorf("%q differs from itself", s)
		}
	})
}

// Whatever bytes are taken for a wheel or a module, what is read of them leads nowhere but into the environment.
func FuzzWheel(f *testing.F) {
	info := "bad-1.0.dist-info/"
	metadata := member{name: info + "METADATA", content: "Name: bad\nVersion: 1.0\nRequires-Dist: six; extra == 'x'\n"}
	for _, members := range [][]member{
		{metadata, {name: info + "entry_points.txt", content: "[console_scripts]\nbad = bad:x\n"}, {name: "bad.py"}},
		{metadata, {name: "bad-1.0.data/scripts/bad"}, {name: "bad-1.0.data/data/share/x"}, {name: "bäd.py", extra: renamed("bäd.py")}},
	} {
		text, err := os.ReadFile(writeWheel(f, members))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), "bad.so")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		const site = "lib/python3.11/site-packages"
		imported(file)
		held, err := inspectWheel(file, Package{Name: "bad", Version: "1.0", Wheel: "bad-1.0-py3-none-any.whl"}, site, 1<<20)
		if err != nil {
			return
		}
		all := map[string]bool{}
		for name := range held.Files {
			if all[name] = true; !filepath.IsLocal(name) || isSkeleton(name) {
				t.Errorf("it installs %q", name)
			}
		}
		_, _ = memberSums(file, site, all)
	})
}
