package tools

import (
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// shellArgs are the arguments of run_shell.
type shellArgs struct {
	Command        string            `json:"command" long:"true" need:"true" doc:"What to run, as a script for bash, or for sh where there is no bash. It may have several lines."`
	Cwd            string            `json:"cwd" doc:"The directory to run in, inside the workspace; the workspace itself if left out."`
	Stdin          string            `json:"stdin" long:"true" doc:"What the command reads as its standard input; empty if left out."`
	Env            map[string]string `json:"env" doc:"Further environment variables."`
	TimeoutSeconds int64             `json:"timeout_seconds" min:"1" doc:"End the run after this many seconds, and discard its changes."`
	OnFailure      string            `json:"on_failure" one:"discard|keep" doc:"Whether the changes land if the exit status is not 0."`
	Environment    string            `json:"environment" doc:"The Python environment that the run has, by its name; the one of this conversation if left out."`
}

// runShell is the tool run_shell.
func runShell(policy Policy) tool {
	fields := underPolicy(fieldsOf(shellArgs{}), policy)
	return tool{
		Tool: mcp.Tool{
			Name:            "run_shell",
			Title:           "Run a shell command",
			Description:     "Runs a shell command in the workspace and returns its output, its exit status and what it changed.",
			RawInputSchema:  inputSchema(fields),
			RawOutputSchema: resultSchema,
			Annotations:     annotations(policy),
		},
		read: func(raw json.RawMessage) (Request, error) {
			var a shellArgs
			if err := readArgs(raw, fields, &a); err != nil {
				return Request{}, err
			}
			r := Request{
				Tool:      "run_shell",
				Command:   a.Command,
				Cwd:       a.Cwd,
				Stdin:     a.Stdin,
				Env:       a.Env,
				Timeout:   time.Duration(a.TimeoutSeconds) * time.Second,
				OnFailure: a.OnFailure,

				Environment: a.Environment,
			}
			return r, problemsOf(
				checkNotBlank("command", a.Command),
				checkInside("cwd", a.Cwd),
				checkEnv(a.Env),
				checkEnvironment(a.Environment),
			)
		},
	}
}
