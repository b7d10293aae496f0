package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/tools"
)

// programs are what people do in runs, under a limit of 1 GiB of memory: more address space than that is taken
// by node, Go and the JVM before they do anything. docs/compatibility.md lists them.
var programs = []struct {
	name  string
	needs []string
	files map[string]string
	runs  []string // one after the other; each must exit with 0
	want  string   // a pattern in the output of the last
}{
	{
		"go test",
		[]string{"go"},
		map[string]string{
			"go.mod":    "module example.test/m\n\ngo 1.21\n",
			"m.go":      "package m\n\nfunc Double(n int) int { return 2 * n }\n",
			"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fail()\n\t}\n}\n",
		},
		[]string{"GOTOOLCHAIN=local GOFLAGS=-mod=mod go test ./...", "GOTOOLCHAIN=local GOFLAGS=-mod=mod go test ./..."},
		`^ok  \texample\.test/m\t\(cached\)`,
	},
	{
		"npm ci",
		[]string{"node", "npm"},
		map[string]string{
			"dep/package.json": `{"name":"dep-of-test","version":"1.2.3","main":"i.js"}`,
			"dep/i.js":         "module.exports = 'from the dependency'\n",
			"package.json":     `{"name":"top","version":"1.0.0","dependencies":{"dep-of-test":"1.2.3"}}`,
			"lock.js": `const fs = require('fs'), c = require('crypto')
const integrity = 'sha512-' + c.createHash('sha512').update(fs.readFileSync(process.argv[2])).digest('base64')
fs.writeFileSync('package-lock.json', JSON.stringify({name: 'top', version: '1.0.0', lockfileVersion: 3, requires: true, packages: {
  '': {name: 'top', version: '1.0.0', dependencies: {'dep-of-test': '1.2.3'}},
  'node_modules/dep-of-test': {version: '1.2.3', resolved: 'https://registry.npmjs.org/dep-of-test/-/dep-of-test-1.2.3.tgz', integrity}}}))
`,
		},
		[]string{
			"cd dep && npm pack --silent && mv *.tgz /tmp/d.tgz && npm cache add /tmp/d.tgz && cd .. && node lock.js /tmp/d.tgz",
			"npm ci --offline --no-audit --no-fund && node -e \"console.log(require('dep-of-test'))\"",
		},
		`from the dependency`,
	},
	{
		"node",
		[]string{"node"},
		nil,
		[]string{`node -e 'WebAssembly.compile(new Uint8Array([0,97,115,109,1,0,0,0])).then(() => fetch("http://localhost:1").catch(() => console.log("node", 6*7)))'`},
		`node 42`,
	},
	{
		"java",
		[]string{"java", "javac"},
		map[string]string{"Hello.java": "public class Hello { public static void main(String[] a) { System.out.println(\"hello from \" + new java.io.File(\"Hello.java\").exists()); } }\n"},
		[]string{"javac Hello.java", "java Hello"},
		`hello from true`,
	},
	{
		"python -m unittest",
		[]string{"python3"},
		map[string]string{"test_x.py": "import multiprocessing, tempfile, unittest\n\nclass T(unittest.TestCase):\n    def test_pool(self):\n        with multiprocessing.Pool(2) as p:\n            self.assertEqual(p.map(abs, [-1, 2]), [1, 2])\n    def test_file(self):\n        with tempfile.NamedTemporaryFile() as f:\n            f.write(b'x')\n"},
		[]string{"python3 -m unittest -v 2>&1"},
		`OK`,
	},
	{
		"make and gcc",
		[]string{"make", "gcc"},
		map[string]string{
			"Makefile": "hello: hello.c\n\tgcc -O2 -o $@ $<\n",
			"hello.c":  "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n",
		},
		[]string{"make", "make && ./hello"},
		`up to date(.|\n)*built`,
	},
	{
		"git",
		[]string{"git"},
		nil,
		[]string{"git init -q . && echo 1 > f && git add . && git -c user.name=a -c user.email=a@b.test commit -qm one", "git mv f g && git status --short && git fsck"},
		`R  f -> g`,
	},
	{
		"sqlite3",
		[]string{"sqlite3"},
		nil,
		[]string{"sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(20),(22);'", "sqlite3 x.db 'select sum(a) from t; pragma integrity_check'"},
		`^42\nok`,
	},
}

// Go's own installer puts it where an ordinary user's PATH does not lead.
const goPrograms = "/usr/local/go/bin"

func TestPrograms(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Setenv("PATH", os.Getenv("PATH")+":"+goPrograms)
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			for _, need := range p.needs {
				if _, err := exec.LookPath(need); err != nil {
					if slices.Contains(strings.Split(*require, ","), "programs") {
						t.Fatal("-require=programs: ", err)
					}
					t.Skip(err)
				}
			}
			runner, _, ws := realRunner(t, func(s *settings) { s.Limits.Memory = 1 << 30 })
			for name, content := range p.files {
				name = filepath.Join(ws, name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for i, command := range p.runs {
				start := time.Now()
				result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: command, Timeout: 20 * time.Minute}, nil)
				if err != nil || result.Status != tools.StatusExited || *result.ExitCode != 0 {
					t.Fatalf("%s: %v\n%s", command, err, result.Text())
				}
				t.Logf("run %d: %v", i+1, time.Since(start).Round(time.Millisecond))
				if i == len(p.runs)-1 && !regexp.MustCompile(p.want).MatchString(result.Output) {
					t.Errorf("%s: no match for %q in\n%s", command, p.want, result.Text())
				}
			}
		})
	}
}
