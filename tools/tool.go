package tools

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// tool is one tool: what a client sees of it, and how its arguments become a Request.
type tool struct {
	mcp.Tool
	// read checks the arguments of a call. Its error is for the model, and names the argument.
	read func(raw json.RawMessage) (Request, error)
	// packages is set instead of read for a tool that runs nothing of the model's.
	packages func(raw json.RawMessage) (packageRequest, error)
}

// offered gives the tools that the configuration does not disable, in the order of [Names].
func offered(c Config, policy Policy) []tool {
	var ts []tool
	for _, t := range []tool{runShell(policy), runPython(policy), packageInstall(policy), pythonEnv(policy)} {
		if c.disables(t.Name) {
			continue
		}
		t.Description = firstChars(t.Description+"\n\n"+policy.Describe(), maxDescription)
		ts = append(ts, t)
	}
	return ts
}

// maxDescription is how many characters of a description a client is sure to show.
const maxDescription = 1900

// annotations are hints for a client that decides what to ask its user about.
func annotations(policy Policy) mcp.ToolAnnotation {
	return mcp.ToolAnnotation{
		ReadOnlyHint:    mcp.ToBoolPtr(policy.ReadOnly && policy.Network == "deny"),
		DestructiveHint: mcp.ToBoolPtr(!policy.ReadOnly), // what a run deletes in the workspace is deleted
		IdempotentHint:  mcp.ToBoolPtr(false),
		OpenWorldHint:   mcp.ToBoolPtr(policy.Direct || policy.Network != "deny"),
	}
}

// underPolicy adds to the fields what the configuration says of them.
func underPolicy(fields []field, p Policy) []field {
	for i := range fields {
		switch f := &fields[i]; f.name {
		case "timeout_seconds":
			f.max = int64(p.Limits.MaxTimeout.Std() / time.Second)
			f.maxKey = "limits.max_timeout"
			if p.Through || p.Direct {
				f.doc = strings.Replace(f.doc, ", and discard its changes", "", 1)
			}
			f.doc += " Left out: " + p.Limits.Timeout.String() + "."
		case "on_failure":
			if p.Through || p.Direct {
				f.doc += " Nothing does here: what a run writes is there at once."
			} else if p.ReadOnly {
				f.doc += " Nothing does here, the workspace is read-only."
			} else if p.LandOn == "exit" {
				f.doc += " Left out: keep."
			} else {
				f.doc += " Left out: discard."
			}
		}
	}
	return fields
}
