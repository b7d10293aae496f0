package tools

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// shellArgs are the arguments of run_shell.
type shellArgs struct {
	Command        string            `json:"command" long:"true" doc:"What to run, as a script for bash, or for sh where there is no bash. It may have several lines. Either this or run_id."`
	Cwd            string            `json:"cwd" doc:"The directory to run in, inside the workspace; the workspace itself if left out."`
	Stdin          string            `json:"stdin" long:"true" doc:"What the command reads as its standard input; empty if left out."`
	Env            map[string]string `json:"env" doc:"Further environment variables."`
	TimeoutSeconds int64             `json:"timeout_seconds" min:"1" doc:"End the run after this many seconds, and discard its changes."`
	OnFailure      string            `json:"on_failure" one:"discard|keep" doc:"Whether the changes land if the exit status is not 0."`
	WaitSeconds    int64             `json:"wait_seconds" min:"0" doc:"Answer after this many seconds if the run still goes on then. It goes on, and lands when it ends; run_id names it."`
	RunID          string            `json:"run_id" doc:"Wait on for a run that goes on, and get its output since the last answer."`
	Stop           bool              `json:"stop" doc:"With run_id: end the run now, as timeout_seconds does."`
	Offset         int64             `json:"offset" min:"0" doc:"With run_id: read all of the run's output, from this byte on."`
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
			a := shellArgs{WaitSeconds: -1, Offset: -1}
			if err := readArgs(raw, fields, &a); err != nil {
				return Request{}, err
			}
			if a.RunID != "" {
				return following("run_shell", raw, a.RunID, a.Stop, a.Offset, a.WaitSeconds)
			}
			r := Request{
				Tool:        "run_shell",
				Command:     a.Command,
				Cwd:         a.Cwd,
				Stdin:       a.Stdin,
				Env:         a.Env,
				Timeout:     time.Duration(a.TimeoutSeconds) * time.Second,
				OnFailure:   a.OnFailure,
				Wait:        time.Duration(a.WaitSeconds) * time.Second,
				Offset:      -1,
				Environment: a.Environment,
			}
			return r, problemsOf(
				checkCommand(a.Command),
				checkNew(a.Stop, a.Offset),
				checkInside("cwd", a.Cwd),
				checkEnv(a.Env),
				checkEnvironment(a.Environment),
			)
		},
	}
}

// checkCommand reports a command that does nothing.
func checkCommand(command string) error {
	if command == "" {
		return errors.New("command: is missing; takes what to run, or give run_id, a run that goes on")
	}
	return checkNotBlank("command", command)
}
