package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"airlock/envs"
	"airlock/internal/units"
)

// look serves, in its turn, a call that installs nothing.
func (s *Server) look(ctx context.Context, c call, r packageRequest, req mcp.CallToolRequest) Result {
	if err := c.ticket.wait(ctx); err != nil {
		return Result{Status: StatusCancelled, Notes: []string{"The call never started."}}
	}
	c.room(ctx)
	runner, news, err := s.open(ctx, req)
	if err != nil {
		s.log.Warn("no run is possible", "err", err)
		return ofPackages(Refused(err.Error()))
	}
	conversation, err := environmentsOf(ctx, runner, r.Tool)
	if err != nil {
		return ofPackages(Refused(err.Error()))
	}
	result := ofPackages(r.look(ctx, conversation))
	if news != "" {
		result.Notes = append(result.Notes, news)
	}
	return result
}

// look does what an action asks for that installs nothing.
func (r packageRequest) look(ctx context.Context, conversation *envs.Conversation) Result {
	store := conversation.Store()
	current, _ := conversation.Current()
	result := Result{Status: StatusDone}
	name := r.Want.Environment
	if name == "" {
		name = current
	}
	var b strings.Builder
	switch r.Action {
	case "list":
		all, err := store.Environments()
		if err != nil {
			result.Notes = append(result.Notes, err.Error())
		}
		if !slices.ContainsFunc(all, func(e envs.Environment) bool { return e.Name == current }) {
			all = append(all, envs.Environment{Name: current})
		}
		for _, e := range all {
			what := "package"
			if e.Language == envs.LanguageR {
				what = "R package"
			}
			fmt.Fprintf(&b, "%s: %s", e.Name, units.Counted(len(e.Packages), what))
			if e.Name == current {
				b.WriteString(" (of this conversation)")
			}
			b.WriteByte('\n')
		}
	case "show":
		e, err := conversation.Effective(name)
		if err != nil {
			return Failed(err.Error())
		}
		result.Environment = name
		ofR, err := store.EnvironmentOf(envs.LanguageR, name)
		if err != nil {
			return Failed(err.Error())
		}
		fmt.Fprintf(&b, "environment %q: %s", name, units.Counted(len(e.Packages), "package"))
		if len(ofR.Packages) > 0 {
			fmt.Fprintf(&b, ", %s", units.Counted(len(ofR.Packages), "R package"))
		}
		b.WriteByte('\n')
		for _, p := range e.Packages {
			fmt.Fprintf(&b, "%s %s\n", p.Name, p.Version)
		}
		for _, p := range ofR.Packages {
			fmt.Fprintf(&b, "%s %s (R)\n", p.Name, p.Version)
		}
	case "use":
		dropped, err := conversation.Use(ctx, name)
		if err != nil {
			return Failed(err.Error())
		}
		result.Environment = name
		fmt.Fprintf(&b, "the runs of this conversation have the environment %q now\n", name)
		if dropped {
			result.Notes = append(result.Notes, "what python_env had added for this conversation is not there any more")
		}
		if e, err := store.Environment(name); err == nil && len(e.Packages) == 0 {
			result.Notes = append(result.Notes, fmt.Sprintf("no Python package was installed into the environment %q yet; python_env lists those that there are", name))
		}
	case "status":
		request, err := store.Request(r.RequestID)
		if errors.Is(err, fs.ErrNotExist) {
			return Failed("request_id: there is no such request; one that was approved and used is gone")
		}
		if err != nil {
			return Failed(err.Error())
		}
		result.RequestID, result.Environment = request.ID, request.Environment
		fmt.Fprintf(&b, "request %s: %s (%s)\n", request.ID, request.State, list(request.Asked))
		switch request.State {
		case envs.Waiting:
			fmt.Fprintf(&b, "the user answers it in a terminal: airlock approve %s\n", request.ID)
		case envs.Approved:
			b.WriteString("make the same call again, and it is installed\n")
		}
	}
	result.Output = b.String()
	return result
}
