package tools

import (
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"airlock/envs"
)

// envArgs are the arguments of python_env.
type envArgs struct {
	Action      string   `json:"action" need:"true" one:"list|show|request|use|status" doc:"list: the environments. show: what one holds. request: add packages to this conversation only. use: make one that of this conversation's runs. status: what became of a request."`
	Environment string   `json:"environment" doc:"For show, request and use: its name. Left out: the one of this conversation."`
	Packages    []string `json:"packages" doc:"For request: what to add, as in package_install."`
	Reason      string   `json:"reason" doc:"For request: what it is for, in a few words, for the user who may be asked."`
	RequestID   string   `json:"request_id" doc:"For status: the request."`
}

// pythonEnv is the tool python_env.
func pythonEnv(policy Policy) tool {
	fields := fieldsOf(envArgs{})
	return tool{
		Tool: mcp.Tool{
			Name:            "python_env",
			Title:           "Python environments",
			Description:     "Lists and shows the Python environments of runs, chooses the one of this conversation, and adds packages for this conversation only (package_install adds them for good). What is on the user's list of allowed packages is there at once; else the answer is approval_required: tell the user to run the command that it names, then call again with the same arguments.",
			RawInputSchema:  inputSchema(fields),
			RawOutputSchema: resultSchema,
			Annotations:     packageAnnotations(),
		},
		packages: func(raw json.RawMessage) (packageRequest, error) {
			var a envArgs
			if err := readArgs(raw, fields, &a); err != nil {
				return packageRequest{}, err
			}
			r := packageRequest{Tool: "python_env", Action: a.Action, RequestID: a.RequestID, Follow: Request{Wait: -1}}
			r.Want.Environment, r.Want.Requirements, r.Want.Reason, r.Want.Conversation = a.Environment, a.Packages, a.Reason, true
			return r, problemsOf(checkEnvironment(a.Environment), a.check())
		},
	}
}

// check reports arguments that an action does not have, or lacks.
func (a envArgs) check() error {
	if a.Action == "request" {
		if a.RequestID != "" {
			return errors.New("request_id: is only for the action \"status\"")
		}
		return checkPackages(envs.LanguagePython, a.Packages)
	}
	switch {
	case len(a.Packages) > 0 || a.Reason != "":
		return errors.New("packages: is only for the action \"request\"")
	case a.Action == "status" && a.RequestID == "":
		return errors.New("request_id: is missing; takes the id that a result gave")
	case a.Action != "status" && a.RequestID != "":
		return errors.New("request_id: is only for the action \"status\"")
	case a.Action == "use" && a.Environment == "":
		return errors.New("environment: is missing; takes the name of the environment to use")
	}
	return nil
}
