package tools

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func readShell(args string) (Request, error) {
	return runShell(testOptions(nil).Policy).read(json.RawMessage(args))
}

func readPython(args string) (Request, error) {
	return runPython(testOptions(nil).Policy).read(json.RawMessage(args))
}

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		read func(string) (Request, error)
		args string
		want Request
	}{
		"only what must be": {readShell, `{"command":"true"}`, Request{Tool: "run_shell", Command: "true"}},
		"all of run_shell": {
			readShell,
			`{"command":"a\nb","cwd":"sub/../x","stdin":"in\u0000","env":{"A":"1","_b2":""},"timeout_seconds":30,"on_failure":"keep"}`,
			Request{
				Tool: "run_shell", Command: "a\nb", Cwd: "sub/../x", Stdin: "in\x00",
				Env: map[string]string{"A": "1", "_b2": ""}, Timeout: 30 * time.Second, OnFailure: "keep",
			},
		},
		"all of run_python": {
			readPython,
			`{"file":"x.py","args":["-v",""],"cwd":"/abs","on_failure":"discard"}`,
			Request{Tool: "run_python", File: "x.py", Args: []string{"-v", ""}, Cwd: "/abs", OnFailure: "discard"},
		},
		"a number as a string":  {readShell, `{"command":"x","timeout_seconds":"30"}`, Request{Tool: "run_shell", Command: "x", Timeout: 30 * time.Second}},
		"spaces around it":      {readShell, `{"command":"x","timeout_seconds":" 30 "}`, Request{Tool: "run_shell", Command: "x", Timeout: 30 * time.Second}},
		"a number with a point": {readShell, `{"command":"x","timeout_seconds":30.0}`, Request{Tool: "run_shell", Command: "x", Timeout: 30 * time.Second}},
		"an exponent":           {readShell, `{"command":"x","timeout_seconds":3e1}`, Request{Tool: "run_shell", Command: "x", Timeout: 30 * time.Second}},
		"null is absent": {
			readShell, `{"command":"x","cwd":null,"env":null,"timeout_seconds":null,"on_failure":null,"stdin":null}`,
			Request{Tool: "run_shell", Command: "x"},
		},
		"null beside code":         {readPython, `{"code":"1","file":null,"args":null}`, Request{Tool: "run_python", Code: "1"}},
		"the longest time":         {readShell, `{"command":"x","timeout_seconds":3600}`, Request{Tool: "run_shell", Command: "x", Timeout: time.Hour}},
		"commands may be long":     {readShell, `{"command":"` + strings.Repeat("#", 1<<20) + `"}`, Request{Tool: "run_shell", Command: strings.Repeat("#", 1<<20)}},
		"code may be long":         {readPython, `{"code":"` + strings.Repeat("#", 1<<20) + `"}`, Request{Tool: "run_python", Code: strings.Repeat("#", 1<<20)}},
		"an answer before the end": {readShell, `{"command":"x","wait_seconds":5}`, Request{Tool: "run_shell", Command: "x", Wait: 5 * time.Second}},
		"waiting on":               {readShell, `{"run_id":"7f","wait_seconds":"5","command":null}`, Request{Tool: "run_shell", RunID: "7f", Wait: 5 * time.Second}},
		"an end":                   {readPython, `{"run_id":"7f","stop":true}`, Request{Tool: "run_python", RunID: "7f", Stop: true}},
		"an end as a string":       {readPython, `{"run_id":"7f","stop":"true"}`, Request{Tool: "run_python", RunID: "7f", Stop: true}},
		"output from somewhere":    {readPython, `{"run_id":"7f","offset":70}`, Request{Tool: "run_python", RunID: "7f", Offset: 70}},
		"an odd name inside":       {readShell, `{"command":"x","cwd":"..x/...\ny"}`, Request{Tool: "run_shell", Command: "x", Cwd: "..x/...\ny"}},
	} {
		got, err := c.read(c.args)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.want.Wait == 0 {
			c.want.Wait = -time.Second // left out
		}
		if c.want.Offset == 0 {
			c.want.Offset = -1
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestArgumentErrors(t *testing.T) {
	const seconds = "a whole number from 1 to 3600 (limits.max_timeout)"
	for _, c := range []struct {
		read func(string) (Request, error)
		args string
		want string
	}{
		{readShell, ``, `command: is missing; takes what to run, or give run_id, a run that goes on`},
		{readShell, `{"stop":true}`, `command: is missing; takes what to run, or give run_id, a run that goes on; stop: needs run_id, the run to end`},
		{readShell, `{"command":"x","stop":true}`, `stop: needs run_id, the run to end`},
		{readShell, `{"command":"x","offset":0}`, `offset: needs run_id, the run whose output to read`},
		{readShell, `{"run_id":"7f","command":"x","cwd":"y"}`, `command: is given beside run_id; with it take only stop, offset and wait_seconds; cwd: is given beside run_id; with it take only stop, offset and wait_seconds`},
		{readShell, `{"run_id":"7f","stop":true,"offset":1}`, `offset: is given beside stop; takes one of them`},
		{readShell, `{"run_id":"7f","stop":"perhaps"}`, `stop: takes true or false`},
		{readShell, `{"command":"x","wait_seconds":-1}`, `wait_seconds: -1 is out of range; takes a whole number from 0`},
		{readShell, `{}`, `command: is missing; takes what to run, or give run_id, a run that goes on`},
		{readShell, `null`, `command: is missing; takes what to run, or give run_id, a run that goes on`},
		{readShell, `{"command":null}`, `command: is missing; takes what to run, or give run_id, a run that goes on`},
		{readShell, `{"command":""}`, `command: is missing; takes what to run, or give run_id, a run that goes on`},
		{readShell, `{"command":" \n"}`, `command: is empty; takes what to run`},
		{readShell, `{"command":["ls"]}`, `command: takes a string`},
		{readShell, `{"command":5}`, `command: takes a string`},
		{readShell, `{"command":"a\u0000b"}`, `command: takes no NUL character`},
		{readShell, `{"command":"x","cwd":"` + strings.Repeat("x", 200_000) + `"}`, `cwd: is 200,000 bytes long; takes at most 130,816`},
		{readShell, `[1]`, `arguments: takes an object with command, cwd, stdin, env, timeout_seconds, on_failure, wait_seconds, run_id, stop, offset, environment`},
		{readShell, `"x"`, `arguments: takes an object with command, cwd, stdin, env, timeout_seconds, on_failure, wait_seconds, run_id, stop, offset, environment`},
		{readShell, `{"command":"x","tiemout_seconds":3}`, `tiemout_seconds: unknown argument; did you mean timeout_seconds?`},
		{readShell, `{"command":"x","timeout":3}`, `timeout: unknown argument; did you mean timeout_seconds?`},
		{readShell, `{"command":"x","Cwd":"a"}`, `Cwd: unknown argument; did you mean cwd?`},
		{readShell, `{"cmd":"x"}`, `cmd: unknown argument; did you mean command?`},
		{readShell, `{"command":"x","run_in_background":true}`, `run_in_background: unknown argument; there are command, cwd, stdin, env, timeout_seconds, on_failure, wait_seconds, run_id, stop, offset, environment`},
		{readShell, `{"command":"x","a\nb\u202e":1}`, `"a\nb\u202e": unknown argument; there are command, cwd, stdin, env, timeout_seconds, on_failure, wait_seconds, run_id, stop, offset, environment`},
		{readShell, `{"command":"x","timeout_seconds":-1}`, `timeout_seconds: -1 is out of range; takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":0}`, `timeout_seconds: 0 is out of range; takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":3601}`, `timeout_seconds: 3601 is out of range; takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":1.5}`, `timeout_seconds: takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":"soon"}`, `timeout_seconds: takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":""}`, `timeout_seconds: takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":1e999999999}`, `timeout_seconds: takes ` + seconds},
		{readShell, `{"command":"x","timeout_seconds":true}`, `timeout_seconds: takes ` + seconds},
		{readShell, `{"command":"x","on_failure":"maybe"}`, `on_failure: takes "discard" or "keep"`},
		{readShell, `{"command":"x","env":["A=1"]}`, `env: takes an object whose values are strings`},
		{readShell, `{"command":"x","env":{"A":1}}`, `env: takes an object whose values are strings`},
		{readShell, `{"command":"x","env":{"A":null}}`, `env: takes an object whose values are strings`},
		{readShell, `{"command":"x","env":{"A=B":"1"}}`, `env: "A=B" is not a name of a variable; takes letters, digits and _, not beginning with a digit`},
		{readShell, `{"command":"x","env":{"":"1"}}`, `env: "" is not a name of a variable; takes letters, digits and _, not beginning with a digit`},
		{readShell, `{"command":"x","env":{"A":"\u0000"}}`, `env: takes no NUL character`},
		{readShell, `{"command":"x","cwd":"../../.."}`, `cwd: "../../.." leads out of the workspace; takes a path inside it`},
		{readShell, `{"command":"x","cwd":"a/../.."}`, `cwd: "a/../.." leads out of the workspace; takes a path inside it`},
		{readShell, `{"command":"x","cwd":"a\u0000"}`, `cwd: takes no NUL character`},
		{readShell, `{"command":" ","cwd":"..","env":{"1":""}}`, `command: is empty; takes what to run; cwd: ".." leads out of the workspace; takes a path inside it; env: "1" is not a name of a variable; takes letters, digits and _, not beginning with a digit`},
		{readPython, `{}`, `code: is missing; takes the program to run, or give file, a program in the workspace, or run_id, a run that goes on`},
		{readPython, `{"code":"1","file":"x.py"}`, `code: is given beside file; takes one of them`},
		{readPython, `{"code":"\n"}`, `code: is empty; takes what to run`},
		{readPython, `{"file":"../x.py"}`, `file: "../x.py" leads out of the workspace; takes a path inside it`},
		{readPython, `{"code":"1","args":"-v"}`, `args: takes an array of strings`},
		{readPython, `{"code":"1","args":[1]}`, `args: takes an array of strings`},
		{readPython, `{"command":"x"}`, `command: unknown argument; there are code, file, args, cwd, stdin, env, timeout_seconds, on_failure, wait_seconds, run_id, stop, offset, environment`},
	} {
		r, err := c.read(c.args)
		if err == nil {
			t.Errorf("%.100s: taken as %+v", c.args, r)
		} else if err.Error() != c.want {
			t.Errorf("%.100s:\n got %s\nwant %s", c.args, err, c.want)
		}
	}
}

// Whatever a model writes, it gets a request that keeps what is promised of one, or an error that
// can be shown.
func FuzzArguments(f *testing.F) {
	f.Add(`{"command":"x","timeout_seconds":"30","env":{"A":"b"},"cwd":"a/b"}`)
	f.Add(`{"code":"x","file":null,"args":["a"],"timeout_seconds":3e1,"on_failure":"keep"}`)
	f.Add(`{"command":"x","timeout_seconds":-0.0e5,"cwd":"a/../../b"}`)
	f.Fuzz(func(t *testing.T, args string) {
		for _, read := range []func(string) (Request, error){readShell, readPython} {
			r, err := read(args)
			if err != nil {
				if text := Failed(err.Error()).Text(); !utf8.ValidString(text) || strings.Count(text, "\n") != 1 {
					t.Fatalf("error %q", text)
				}
				continue
			}
			if r.Timeout < 0 || r.Timeout > time.Hour || r.Timeout%time.Second != 0 {
				t.Fatalf("timeout %s", r.Timeout)
			}
			if (r.Tool == "run_shell") != (r.Command != "") || r.Command == "" && (r.Code == "") == (r.File == "") {
				t.Fatalf("not one program: %+v", r)
			}
			for _, p := range []string{r.Cwd, r.File} {
				if !path.IsAbs(p) && strings.HasPrefix(path.Join("/a/b", p)+"/", "/a/b/") == false {
					t.Fatalf("%q leads out", p)
				}
			}
			for _, s := range append([]string{r.Command, r.Code, r.File, r.Cwd, fmt.Sprint(r.Env)}, r.Args...) {
				if strings.Contains(s, "\x00") {
					t.Fatalf("a NUL in %+v", r)
				}
			}
		}
	})
}
