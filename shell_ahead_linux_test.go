package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"testing"

	"airlock/tools"
)

// The shell that a server has started ahead is the one that the next call wants, whatever the call before it was.
func TestShellAheadOfACall(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("no shell is started ahead on this architecture")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	runner, _, _ := configuredRunner(t, "", func(*settings) {})
	runner.(interface{ Prepare() }).Prepare()
	// What is begun ahead is thrown away when the host's mounts change, as tests of other packages change them.
	failure := ""
	for range 5 {
		if failure = callsInTurn(t, runner); failure == "" {
			return
		}
	}
	t.Error(failure)
}

// callsInTurn makes calls one after the other, and says which was not answered by the shell that it should be.
func callsInTurn(t *testing.T, runner tools.Runner) (failure string) {
	// NULs follow the command of a shell that was started ahead.
	const whether = `[ "$(tr -dc '\0' </proc/$$/cmdline | wc -c)" -gt 100 ] && echo ahead || echo anew`
	plain := tools.Request{Tool: "run_shell", Command: whether}
	withVariable, withInput := plain, plain
	withVariable.Env = map[string]string{"A": "b"}
	withInput.Stdin = "text"
	python := tools.Request{Tool: "run_python", Code: "print('python')"}
	for i, call := range []struct {
		tools.Request
		want string
	}{
		{plain, "ahead\n"},
		{plain, "ahead\n"},
		{withVariable, "anew\n"},
		{plain, "ahead\n"},
		{withInput, "anew\n"},
		{plain, "ahead\n"},
		{python, "python\n"},
		{plain, "ahead\n"},
	} {
		result, err := runner.Run(t.Context(), call.Request, nil)
		if err != nil || result.Status != tools.StatusExited || result.Output != call.want {
			return fmt.Sprintf("call %d: %v, want %q, got\n%s", i, err, call.want, result.Text())
		}
	}
	return ""
}
