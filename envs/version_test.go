package envs

import "testing"

func TestVersionOrder(t *testing.T) {
	// Each is before the next; those in one line are equal.
	order := [][]string{
		{"0.9"},
		{"1.0.dev1"},
		{"1.0a1.dev1"},
		{"1.0a1", "1.0-alpha.1", "v1.0A1"},
		{"1.0a2"},
		{"1.0b1"},
		{"1.0rc1", "1.0c1", "1.0-pre1"},
		{"1.0", "1", "1.0.0"},
		{"1.0+local"},
		{"1.0+local.2"},
		{"1.0+3"},
		{"1.0.post1.dev2"},
		{"1.0.post1", "1.0-1", "1.0.rev1"},
		{"1.0.1"},
		{"1.9"},
		{"1.10"},
		{"1!0.1"},
	}
	for i, row := range order {
		for j, other := range order {
			for _, a := range row {
				for _, b := range other {
					va, errA := ParseVersion(a)
					vb, errB := ParseVersion(b)
					if errA != nil || errB != nil {
						t.Fatalf("%q, %q: %v, %v", a, b, errA, errB)
					}
					want := 0
					if i != j {
						want = map[bool]int{true: -1, false: 1}[i < j]
					}
					if got := va.Compare(vb); got != want {
						t.Errorf("%s against %s: %d, want %d", a, b, got, want)
					}
				}
			}
		}
	}
	for _, bad := range []string{"", "x", "1..0", "1.0+", "1.0 2", "1.0\n2", "==1"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q is taken for version %s", bad, v)
		}
	}
}

func TestSpecifiers(t *testing.T) {
	for _, tt := range []struct {
		spec, version string
		want          bool
	}{
		{"==1.16.0", "1.16", true},
		{"==1.16", "1.16.1", false},
		{"==1.16.*", "1.16.9", true},
		{"==1.16.*", "1.160", false},
		{"!=1.16.*", "1.17", true},
		{"==1.0", "1.0+local", true},
		{"==1.0+a", "1.0", false},
		{">=1.16", "1.16.0", true},
		{"<1.17", "1.16.9", true},
		{"<1.17", "1.17rc1", false},
		{"<1.17rc2", "1.17rc1", true},
		{">1.7", "1.7.post1", false},
		{">1.7", "1.7.1", true},
		{"<=1.0", "1.0+x", true},
		{"~=2.2", "2.9", true},
		{"~=2.2", "3.0", false},
		{"~=2.2.1", "2.3", false},
		{">=1,<2,!=1.5", "1.5", false},
		{">=1,<2,!=1.5", "1.6", true},
		{"", "anything", true},
	} {
		r, err := ParseRequirement("x" + tt.spec)
		if err != nil {
			t.Fatalf("x%s: %v", tt.spec, err)
		}
		if got := r.Contains(tt.version); got != tt.want {
			t.Errorf("%s in %q: %t, want %t", tt.version, tt.spec, got, tt.want)
		}
	}
}

func TestMarkers(t *testing.T) {
	env := map[string]string{"python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64", "extra": ""}
	for marker, want := range map[string]bool{
		"":                                true,
		`python_version > "2"`:            true,
		`python_version < "3.9"`:          false, // as texts it would be true for 3.11
		`"3.9" <= python_version`:         true,
		`python_full_version == "3.11.*"`: true,
		`sys_platform == "win32"`:         false,
		`sys_platform == "win32" or os_name == 'posix'`:                            true,
		`(sys_platform == "win32" or os_name == 'posix') and python_version < "3"`: false,
		`sys_platform == "win32" and os_name == "posix" or python_version >= "3"`:  true,
		`platform_machine in "x86_64 aarch64"`:                                     true,
		`platform_machine not in "x86_64 aarch64"`:                                 false,
		`extra == "color"`:        false,
		`os.name == "posix"`:      true,
		`python_version ~= "3.8"`: true,
	} {
		m, err := parseMarker(marker)
		if err != nil {
			t.Errorf("%s: %v", marker, err)
			continue
		}
		if got := m.Holds(env); got != want {
			t.Errorf("%s is %t, want %t", marker, got, want)
		}
	}
	for _, bad := range []string{"python_version", `python_version <`, `nothing == "x"`, `(os_name == "x"`, `os_name == "x" os_name`, `os_name === "x"`, `__import__("os")`} {
		if _, err := parseMarker(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestParseRequirement(t *testing.T) {
	for text, want := range map[string]string{
		"six":                          "six",
		"Zope.Interface":               "zope-interface",
		"zope_interface[test]":         "zope-interface[test]",
		"Friendly_Bard[B, a ,a]":       "friendly-bard[a,b]",
		"numpy >= 1.26, < 2":           "numpy>=1.26,<2",
		`six; python_version>"2"`:      `six ; python_version>"2"`,
		`six==1.16.* ; os_name == 'x'`: `six==1.16.* ; os_name == 'x'`,
		"x~=1.0":                       "x~=1.0",
	} {
		r, err := ParseRequirement(text)
		if err != nil || r.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, r, err, want)
		}
	}
	for _, bad := range []string{
		"", " six", "six ", "\nsix", "six\n--pre", "-r /etc/passwd", "--index-url=http://evil", "-e .", "x @ file:///etc", "x@https://h/x.whl", "./x", "../x", "/x", "x/y",
		"git+https://h/x", "https://h/x.whl", "six==1.0 --hash=sha256:0", "six # comment", "six#egg=x", "a===1", "six==", "six==1.0;", "six=1", "six>=x", "x; os_name", "x.whl @ .", "six\x00", "sıx", "six\\", "$HOME", "${X}",
		"x; __import__('os')", "x~=1",
	} {
		if r, err := ParseRequirement(bad); err == nil {
			t.Errorf("%q was taken for %q", bad, r)
		}
	}
}
