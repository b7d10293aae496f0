package tools

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// pythonArgs are the arguments of run_python.
type pythonArgs struct {
	Code           string            `json:"code" long:"true" doc:"The program to run. One of code, file and run_id is given."`
	File           string            `json:"file" doc:"A program in the workspace to run. One of code, file and run_id is given."`
	Args           []string          `json:"args" doc:"The program's arguments, sys.argv[1:]."`
	Cwd            string            `json:"cwd" doc:"The directory to run in, inside the workspace; the workspace itself if left out."`
	Stdin          string            `json:"stdin" long:"true" doc:"What the program reads as its standard input; empty if left out."`
	Env            map[string]string `json:"env" doc:"Further environment variables."`
	TimeoutSeconds int64             `json:"timeout_seconds" min:"1" doc:"End the run after this many seconds, and discard its changes."`
	OnFailure      string            `json:"on_failure" one:"discard|keep" doc:"Whether the changes land if the exit status is not 0."`
	WaitSeconds    int64             `json:"wait_seconds" min:"0" doc:"Answer after this many seconds if the run still goes on then. It goes on, and lands when it ends; run_id names it."`
	RunID          string            `json:"run_id" doc:"Wait on for a run that goes on, and get its output since the last answer."`
	Stop           bool              `json:"stop" doc:"With run_id: end the run now, as timeout_seconds does."`
	Offset         int64             `json:"offset" min:"0" doc:"With run_id: read all of the run's output, from this byte on."`
	Environment    string            `json:"environment" doc:"The Python environment that the run has, by its name; the one of this conversation if left out."`
}

// runPython is the tool run_python.
func runPython(policy Policy) tool {
	fields := underPolicy(fieldsOf(pythonArgs{}), policy)
	return tool{
		Tool: mcp.Tool{
			Name:            "run_python",
			Title:           "Run Python",
			Description:     "Runs a Python program in the workspace, with the environment that is named or was chosen, else the project's .venv, else the environment default, else the system's Python, and returns its output, its exit status and what it changed. Only what is printed is shown; each call is a process of its own.",
			RawInputSchema:  inputSchema(fields),
			RawOutputSchema: resultSchema,
			Annotations:     annotations(policy),
		},
		read: func(raw json.RawMessage) (Request, error) {
			a := pythonArgs{WaitSeconds: -1, Offset: -1}
			if err := readArgs(raw, fields, &a); err != nil {
				return Request{}, err
			}
			if a.RunID != "" {
				return following("run_python", raw, a.RunID, a.Stop, a.Offset, a.WaitSeconds)
			}
			r := Request{
				Tool:        "run_python",
				Code:        a.Code,
				File:        a.File,
				Args:        a.Args,
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
				checkNew(a.Stop, a.Offset),
				checkProgram(a.Code, a.File),
				checkInside("file", a.File),
				checkInside("cwd", a.Cwd),
				checkEnv(a.Env),
				checkEnvironment(a.Environment),
			)
		},
	}
}

// checkProgram reports anything but one program.
func checkProgram(code, file string) error {
	switch {
	case code == "" && file == "":
		return errors.New("code: is missing; takes the program to run, or give file, a program in the workspace, or run_id, a run that goes on")
	case code != "" && file != "":
		return errors.New("code: is given beside file; takes one of them")
	case file == "":
		return checkNotBlank("code", code)
	}
	return nil
}
