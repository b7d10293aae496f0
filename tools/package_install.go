package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"airlock/envs"
)

// installArgs are the arguments of package_install.
type installArgs struct {
	Packages    []string `json:"packages" doc:"What to install, as in \"six\", \"numpy>=1.26\", \"httpx[http2]\": a name of the package index, with extras and versions if any. No options, paths or addresses. Either this or run_id."`
	Language    string   `json:"language" one:"python|r" doc:"Left out: python. For r, names are those of R packages: \"jsonlite\", \"jsonlite>=1.8\"."`
	Environment string   `json:"environment" doc:"The environment to install into. Left out: default. One that is not there yet is made."`
	Upgrade     bool     `json:"upgrade" doc:"Whether packages that are there already may be replaced by newer ones. Left out: false."`
	Reason      string   `json:"reason" doc:"What it is for, in a few words, for the user who may be asked."`
	WaitSeconds int64    `json:"wait_seconds" min:"0" doc:"Answer after this many seconds if the installation still goes on then. It goes on; run_id names it."`
	RunID       string   `json:"run_id" doc:"Wait on for an installation that goes on."`
	Stop        bool     `json:"stop" doc:"With run_id: end the installation now. Nothing is installed then."`
}

// packageInstall is the tool package_install.
func packageInstall(policy Policy) tool {
	fields := fieldsOf(installArgs{})
	return tool{
		Tool: mcp.Tool{
			Name:            "package_install",
			Title:           "Install packages",
			Description:     "Installs Python packages into a named environment that lasts, which runs then see at /env, first on PATH; run_python uses it. With language \"r\", R packages, which are built and which R then finds. The whole set, with everything that is required, is resolved first; what the user has not allowed yet is asked of them once. Nothing of a package runs on the host. If the answer is approval_required, tell the user to run the command that it names, then call again with the same arguments.",
			RawInputSchema:  inputSchema(fields),
			RawOutputSchema: resultSchema,
			Annotations:     packageAnnotations(),
		},
		packages: func(raw json.RawMessage) (packageRequest, error) {
			a := installArgs{WaitSeconds: -1}
			if err := readArgs(raw, fields, &a); err != nil {
				return packageRequest{}, err
			}
			if a.RunID != "" {
				follow, err := following("package_install", raw, a.RunID, a.Stop, -1, a.WaitSeconds)
				return packageRequest{Tool: "package_install", Action: "install", Follow: follow}, err
			}
			if a.Environment == "" {
				a.Environment = envs.DefaultEnvironment
			}
			r := packageRequest{Tool: "package_install", Action: "install", Want: envs.Want{
				Environment: a.Environment, Requirements: a.Packages, Upgrade: a.Upgrade, Reason: a.Reason,
				Language: language(a.Language),
			}, Follow: Request{Wait: time.Duration(a.WaitSeconds) * time.Second}}
			return r, problemsOf(checkNew(a.Stop, -1), checkPackages(language(a.Language), a.Packages), checkEnvironment(a.Environment))
		},
	}
}

func packageAnnotations() mcp.ToolAnnotation {
	return mcp.ToolAnnotation{
		ReadOnlyHint:    mcp.ToBoolPtr(false),
		DestructiveHint: mcp.ToBoolPtr(false), // an environment is replaced as a whole, and the workspace is not touched
		IdempotentHint:  mcp.ToBoolPtr(true),
		OpenWorldHint:   mcp.ToBoolPtr(true),
	}
}

// maxPackages bounds the requirements of one call.
const maxPackages = 100

// checkPackages reports everything that is not a requirement.
func checkPackages(language string, list []string) error {
	if list == nil {
		return fmt.Errorf("packages: is missing; takes %s", kindStrings)
	}
	if len(list) == 0 {
		return errors.New("packages: is empty; takes what to install, as in \"six\" or \"numpy>=1.26\"")
	}
	if len(list) > maxPackages {
		return fmt.Errorf("packages: %d at once; takes at most %d", len(list), maxPackages)
	}
	var wrong []string
	for _, s := range list {
		if err := envs.CheckRequirement(language, s); err != nil {
			wrong = append(wrong, fmt.Sprintf("packages: %q: %v", firstChars(s, 100), err))
		}
	}
	return problems(wrong)
}

// language gives the language of an argument.
func language(argument string) string {
	if argument == "" {
		return envs.LanguagePython
	}
	return argument
}

// packageRequest is one call of a package tool after its arguments were checked.
type packageRequest struct {
	Tool      string
	Action    string // "install", or one of python_env's
	Want      envs.Want
	RequestID string
	// Follow names the run of an earlier call that this one is about, and says how long to wait.
	Follow Request
}

// installs reports whether the call may install something.
func (r packageRequest) installs() bool { return r.Action == "install" || r.Action == "request" }

// same reports whether two calls ask for the same.
func (r packageRequest) same(o packageRequest) bool {
	return r.Tool == o.Tool && r.Action == o.Action && r.RequestID == o.RequestID && r.Follow.RunID == o.Follow.RunID && r.Want.Environment == o.Want.Environment &&
		r.Want.Conversation == o.Want.Conversation && r.Want.Language == o.Want.Language && r.Want.Upgrade == o.Want.Upgrade && r.Want.Reason == o.Want.Reason &&
		slices.Equal(r.Want.Requirements, o.Want.Requirements)
}

// setLine says of an installation what it did.
func setLine(w envs.Want, installed envs.Installed) string {
	where := fmt.Sprintf("environment %q", w.Environment)
	if w.Conversation {
		where = fmt.Sprintf("this conversation, on top of environment %q", w.Environment)
	}
	var parts []string
	for _, c := range installed.Changes {
		switch {
		case c.Version == "":
			parts = append(parts, fmt.Sprintf("%s %s removed", c.Name, c.Was))
		case c.Was == "":
			parts = append(parts, c.Name+" "+c.Version)
		case c.Was == c.Version:
			parts = append(parts, fmt.Sprintf("%s %s made anew", c.Name, c.Version))
		default:
			parts = append(parts, fmt.Sprintf("%s %s -> %s", c.Name, c.Was, c.Version))
		}
	}
	if installed.Additive {
		return fmt.Sprintf("%s: installed %s (additive: nothing that was there changed)", where, strings.Join(parts, ", "))
	}
	return fmt.Sprintf("%s: changed %s (NOT additive: what was there changed)", where, strings.Join(parts, ", "))
}
