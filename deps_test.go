package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module is the path of this module; everything below it is ours.
const module = "airlock"

// siblings never import each other: where two of them must meet, the meeting point is a plain value that
// tools or main builds. So each can be read, tested and replaced by itself.
var siblings = []string{"sandbox", "overlay", "proxy", "envs"}

// imports says what each package may import of this module, and why nothing more.
var imports = map[string]struct {
	may []string
	why string
}{
	"":                     {[]string{"tools", "sandbox", "overlay", "proxy", "envs", "internal/configmerge", "internal/control", "internal/filelock", "internal/gitconfig", "internal/hugeheap", "internal/pattern", "internal/spelling", "internal/units", "internal/untrusted"}, "main wires the packages and knows them all"},
	"tools":                {[]string{"sandbox", "overlay", "proxy", "envs", "envs/envstest", "internal/lull", "internal/pattern", "internal/spelling", "internal/units"}, "tools drives the four; who starts it is main's business"},
	"sandbox":              {[]string{"internal/lull", "internal/mountinfo", "internal/procfile", "internal/units", "sandbox/sandboxtest"}, "a sandbox knows nothing of transactions, networks or packages: it gets a plain Spec"},
	"overlay":              {[]string{"internal/clearing", "internal/filelock", "internal/gitconfig", "internal/lull", "internal/mountinfo", "internal/pattern", "internal/procfile", "internal/units", "internal/untrusted"}, "a transaction knows directories, not what ran in them"},
	"proxy":                {[]string{"internal/units"}, "policy of the network is judged without knowing who asks"},
	"envs":                 {[]string{"envs/envstest", "internal/clearing", "internal/filelock", "internal/pattern", "internal/units", "internal/untrusted"}, "environments are values that others mount"},
	"envs/envstest":        {[]string{"envs"}, "it plays an installer for tests of envs and of tools"},
	"sandbox/sandboxtest":  {[]string{"sandbox"}, "it attacks a Backend through what the contract says, and so any of them"},
	"internal/pattern":     {nil, "a leaf, so that no package compiles an expression that a run does not use"},
	"internal/units":       {nil, "a leaf, so that every package can spell its configuration with it"},
	"internal/hugeheap":    {nil, "a leaf, so that it is set up before what takes long"},
	"internal/procfile":    {nil, "a leaf, so that sandbox and overlay read what the kernel writes alike"},
	"internal/lull":        {nil, "a leaf, so that what nobody waits for is put off alike in all of the process"},
	"internal/filelock":    {nil, "a leaf, so that whoever shares a directory with other servers waits in the same way"},
	"internal/spelling":    {nil, "a leaf, so that commands, keys and arguments are mended alike"},
	"internal/untrusted":   {nil, "a leaf, so that a workspace's files are read with the same care everywhere"},
	"internal/clearing":    {nil, "a leaf, so that nothing hostile stays behind, whoever it was made for"},
	"internal/mountinfo":   {nil, "a leaf, so that sandbox and overlay read the kernel's list of mounts alike"},
	"internal/gitconfig":   {[]string{"internal/pattern", "internal/untrusted"}, "a leaf: what git obeys is judged without a workspace or a layer"},
	"internal/configmerge": {nil, "a leaf: text in, text out, whatever the file is for"},
	"internal/control":     {nil, "a leaf: it tells of runs, whatever they are"},
	"internal/mcpclient":   {nil, "it stands outside as a client does, and must not share the server's mistakes"},
	"internal/demo":        {[]string{"internal/mcpclient"}, "it drives the binary, as a client does"},
	"internal/bench":       {[]string{"envs/envstest", "internal/mcpclient"}, "it drives the binary, as a client does, and serves it a wheel"},
	"internal/posix":       {nil, "it drives the binary, as a person does, and must not share the product's mistakes"},
	"internal/gotest":      {nil, "it runs tests of every package and is none of them"},
}

// testImports says what tests of a package may import beside, and what for.
var testImports = map[string]map[string]string{
	"": {
		"envs/envstest":      "the wheels that a package index of a test serves",
		"internal/mcpclient": "servers of their own are driven as a client does",
	},
	"overlay": {"internal/mcpclient": "runs of a server race with editors, as a client starts them"},
}

// modules says which other modules code may import, and what for; inTests is what tests may beside.
var (
	modules = map[string]string{
		"github.com/mark3labs/mcp-go":  "types, schemas and dispatch of the protocol",
		"golang.org/x/sys":             "system calls that the standard library lacks",
		"github.com/BurntSushi/toml":   "configuration with positions in its errors",
		"github.com/charmbracelet/log": "the log on standard error",
		"mvdan.cc/sh/v3":               "where shell text must be understood",
		"github.com/google/nftables":   "redirecting a run's connections",
		"golang.org/x/net":             "reading and writing DNS messages",
	}
	inTests = map[string]string{
		"github.com/google/go-cmp":               "readable differences",
		"github.com/rogpeppe/go-internal":        "testscript, for the command line",
		"github.com/modelcontextprotocol/go-sdk": "a client that shares no code with the server",
	}
)

// TestImports holds the direction of imports for every Go file of the module, whatever its build tags.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(name))
		if pkg == "." {
			pkg = ""
		}
		seen[pkg] = true
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if err := judge(pkg, imported, strings.HasSuffix(name, "_test.go")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range append([]string{"", "tools"}, siblings...) {
		if !seen[pkg] {
			t.Errorf("no Go file was seen in %q: this test looks in the wrong place", pkg)
		}
	}
}

// judge says why a package may not import another, or nil.
func judge(pkg, imported string, test bool) error {
	rule, known := imports[pkg]
	if !known {
		return fmt.Errorf("package %q has no rule in deps_test.go: say what it may import, and why", pkg)
	}
	if imported == module || strings.HasPrefix(imported, module+"/") {
		local := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
		if local == pkg { // an external test of the package itself
			return nil
		}
		for _, may := range rule.may {
			if local == may {
				return nil
			}
		}
		if test && testImports[pkg][local] != "" {
			return nil
		}
		return fmt.Errorf("%q may not import %q: %s", pkg, local, rule.why)
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") { // the standard library
		return nil
	}
	for m := range modules {
		if within(imported, m) {
			return nil
		}
	}
	for m := range inTests {
		if within(imported, m) {
			if test {
				return nil
			}
			return fmt.Errorf("%q is for tests only (%s)", imported, inTests[m])
		}
	}
	return fmt.Errorf("%q is of no module in deps_test.go: a decision record says what a new one saves", imported)
}

func within(pkg, m string) bool { return pkg == m || strings.HasPrefix(pkg, m+"/") }

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		pkg, imported string
		test          bool
		want          string // "" if the import is allowed
	}{
		{"", "airlock/tools", false, ""},
		{"tools", "airlock/sandbox", false, ""},
		{"tools", "airlock/overlay", false, ""},
		{"sandbox", "airlock/overlay", false, `"sandbox" may not import "overlay": a sandbox knows nothing of transactions, networks or packages: it gets a plain Spec`},
		{"sandbox", "airlock/overlay", true, `"sandbox" may not import "overlay": a sandbox knows nothing of transactions, networks or packages: it gets a plain Spec`},
		{"overlay", "airlock/tools", false, `"overlay" may not import "tools": a transaction knows directories, not what ran in them`},
		{"overlay", "airlock", false, `"overlay" may not import "": a transaction knows directories, not what ran in them`},
		{"overlay", "airlock/internal/units", false, ""},
		{"internal/units", "airlock/sandbox", false, `"internal/units" may not import "sandbox": a leaf, so that every package can spell its configuration with it`},
		{"sandbox", "airlock/sandbox", true, ""},
		{"tools", "os/exec", false, ""},
		{"tools", "github.com/mark3labs/mcp-go/mcp", false, ""},
		{"tools", "github.com/mark3labs/mcp-go-evil", false, `"github.com/mark3labs/mcp-go-evil" is of no module in deps_test.go: a decision record says what a new one saves`},
		{"tools", "github.com/google/go-cmp/cmp", true, ""},
		{"tools", "github.com/google/go-cmp/cmp", false, `"github.com/google/go-cmp/cmp" is for tests only (readable differences)`},
		{"utils", "os", false, `package "utils" has no rule in deps_test.go: say what it may import, and why`},
	} {
		got := ""
		if err := judge(tt.pkg, tt.imported, tt.test); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s imports %s (test: %t) (-want +got):\n%s", tt.pkg, tt.imported, tt.test, diff)
		}
	}
}

// TestPackagesSayWhatTheyPromise holds that the packages with a contract state it, and its limits, in doc.go.
func TestPackagesSayWhatTheyPromise(t *testing.T) {
	for _, pkg := range append([]string{"tools"}, siblings...) {
		doc, err := os.ReadFile(path.Join(pkg, "doc.go"))
		if errors.Is(err, fs.ErrNotExist) {
			t.Errorf("package %s has no doc.go", pkg)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(doc), "# Limitations") {
			t.Errorf("%s/doc.go has no section \"# Limitations\"", pkg)
		}
	}
}
