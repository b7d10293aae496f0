package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"airlock/envs"
)

// A call of a package tool takes its place in the queue as a run does. An installation goes
//
//	plan -> (ask) -> apply
//
// where a question ends the call's first part: a client of protocol 2026-07-28 gets it as its result and
// calls again with the answer, an older one is asked while the call goes on, and mcp-go calls the handler
// again. What was asked about stays here; the client holds a random name for it, which is good for one
// answer, and for the same arguments only.

// approveInput names our question in a result that asks.
const approveInput = "approve"

// packageCall serves one call of a package tool.
func (s *Server) packageCall(ctx context.Context, c call, t tool, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r, err := t.packages(req.Params.RawArguments)
	if err != nil {
		return toolResult(Failed(err.Error())), nil
	}
	if s.mustAskFirst(ctx, req) {
		return server.NewInputRequestBuilder("").Roots(rootsInput).ToolResult(), nil
	}
	p := startProgress(c.token, s.every, c.notify)
	defer p.stop()
	if err := c.ticket.wait(ctx); err != nil {
		return toolResult(Result{Status: StatusCancelled, Notes: []string{"The call never started."}}), nil
	}
	c.room(ctx)
	runner, news, err := s.open(ctx, req)
	if err != nil {
		s.log.Warn("no run is possible", "err", err)
		return toolResult(Refused(err.Error())), nil
	}
	pc := &packageCall{server: s, request: r, progress: p.take(), canAsk: canElicit(ctx)}
	result, question := pc.serve(ctx, runner, req)
	if question != nil {
		return question, nil
	}
	result.ofPackages = true
	if news != "" {
		result.Notes = append(result.Notes, news)
	}
	return toolResult(result), nil
}

// packageCall is one call that is served.
type packageCall struct {
	server   *Server
	request  packageRequest
	progress func(string)
	canAsk   bool

	conversation *envs.Conversation
}

func (c *packageCall) serve(ctx context.Context, runner Runner, req mcp.CallToolRequest) (Result, *mcp.CallToolResult) {
	if err := runner.Permit(Request{Tool: c.request.Tool}); err != nil {
		return Refused(err.Error()), nil
	}
	conversation, err := runner.Environments(ctx)
	if err != nil {
		return Refused(err.Error()), nil
	}
	c.conversation = conversation
	if c.request.Action != "install" && c.request.Action != "request" {
		return c.look(conversation), nil
	}
	if c.request.Want.Environment == "" {
		c.request.Want.Environment, _ = conversation.Current()
	}
	if state := req.Params.RequestState; state != "" {
		return c.answered(ctx, conversation, state, req), nil
	}
	plan, err := conversation.Plan(ctx, c.request.Want, c.progress)
	if err != nil {
		return c.failed(ctx, err), nil
	}
	permitted, err := conversation.Permitted(ctx, plan)
	switch {
	case err != nil:
		return c.failed(ctx, err), nil
	case permitted:
		return c.apply(ctx, conversation, plan), nil
	case c.canAsk && c.request.Action == "install":
		return Result{}, c.ask(conversation, plan)
	}
	return c.leave(ctx, conversation, plan), nil
}

// ask gives the question as a result.
func (c *packageCall) ask(conversation *envs.Conversation, plan *envs.Plan) *mcp.CallToolResult {
	state := c.server.pending.keep(c.request, plan)
	return server.NewInputRequestBuilder(state).Elicit(approveInput, mcp.ElicitationParams{
		Message: plan.Question(conversation.Index()),
		RequestedSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"always": map[string]any{
					"type": "boolean", "title": fmt.Sprintf("Always allow these in the environment %q", plan.Want.Environment),
					"description": "Later versions too; `airlock envs` lists and revokes it.", "default": false,
				},
			},
		},
	}).ToolResult()
}

// answered goes on with a plan that the user was asked about.
func (c *packageCall) answered(ctx context.Context, conversation *envs.Conversation, state string, req mcp.CallToolRequest) Result {
	plan := c.server.pending.take(state, c.request)
	if plan == nil {
		return Refused("the answer belongs to no question that is open for exactly this call; call again without it")
	}
	answer := server.ElicitationResponse(req.Params.InputResponses, approveInput)
	if answer == nil || answer.Action != mcp.ElicitationResponseActionAccept {
		return Refused("the user did not approve it; nothing was installed")
	}
	if content, ok := answer.Content.(map[string]any); ok && content["always"] == true {
		if err := conversation.Store().Grant(ctx, plan.Want.Environment, plan.Asked()); err != nil {
			return c.failed(ctx, err)
		}
	}
	installed, err := conversation.Apply(ctx, plan, c.progress)
	if errors.Is(err, envs.ErrChanged) {
		return Failed(err.Error() + "; what was approved does not fit any more. Call again")
	}
	if err != nil {
		return c.failed(ctx, err)
	}
	return c.done(plan, installed)
}

// leave leaves a request that the user answers on the command line.
func (c *packageCall) leave(ctx context.Context, conversation *envs.Conversation, plan *envs.Plan) Result {
	request, err := conversation.Leave(ctx, plan)
	if err != nil {
		return c.failed(ctx, err)
	}
	return Result{
		Status: StatusApproval, RequestID: request.ID, Environment: plan.Want.Environment,
		Reason: fmt.Sprintf("%s must be approved by the user, in a terminal: airlock approve %s; then call again with the same arguments. Nothing was installed",
			strings.Join(plan.Asked(), ", "), request.ID),
	}
}

// maxTries bounds how often a plan that needs no question is made anew because another server was faster.
const maxTries = 5

// apply installs what is permitted.
func (c *packageCall) apply(ctx context.Context, conversation *envs.Conversation, plan *envs.Plan) Result {
	for try := 1; ; try++ {
		if plan.Already || len(plan.Changes) == 0 {
			return c.nothing(plan)
		}
		installed, err := conversation.Apply(ctx, plan, c.progress)
		if err == nil {
			return c.done(plan, installed)
		}
		if !errors.Is(err, envs.ErrChanged) || try == maxTries {
			return c.failed(ctx, err)
		}
		if plan, err = conversation.Plan(ctx, c.request.Want, c.progress); err != nil {
			return c.failed(ctx, err)
		}
		if len(plan.Decision.Ask) > 0 {
			return Failed(envs.ErrChanged.Error() + ", and the set needs an approval now. Call again")
		}
	}
}

// nothing is the Result where there was nothing to install.
func (c *packageCall) nothing(plan *envs.Plan) Result {
	yes := true
	result := Result{Status: StatusDone, Environment: plan.Want.Environment, Additive: &yes, Notes: skipped(plan)}
	if plan.Already {
		var parts []string
		for _, p := range plan.Present() {
			parts = append(parts, p.Name+" "+p.Version)
		}
		result.Output = fmt.Sprintf("environment %q: already installed: %s\n", plan.Want.Environment, list(parts))
	} else {
		result.Output = fmt.Sprintf("environment %q: nothing to install\n", plan.Want.Environment)
	}
	return result
}

// done is the Result of an installation.
func (c *packageCall) done(plan *envs.Plan, installed envs.Installed) Result {
	result := Result{
		Status: StatusDone, Environment: plan.Want.Environment, Additive: &installed.Additive,
		Output: setLine(plan.Want, installed) + "\n", Notes: skipped(plan),
	}
	if _, chosen := c.conversation.Current(); !chosen {
		result.Notes = append(result.Notes, fmt.Sprintf("where the project has a .venv, run_python takes that unless environment: %q is given", plan.Want.Environment))
	}
	for _, change := range installed.Changes {
		result.Installed = append(result.Installed, Installed{Name: change.Name, Version: change.Version, Was: change.Was})
	}
	if len(installed.Missing) > 0 {
		result.Notes = append(result.Notes, "the host lacks shared libraries, so that these modules can't be imported: "+list(installed.Missing)+"; only the user can install them")
	}
	return result
}

func skipped(plan *envs.Plan) []string {
	if len(plan.Skipped) == 0 {
		return nil
	}
	return []string{"not installed, since the condition does not hold for this Python: " + list(plan.Skipped)}
}

// failed tells what the user's configuration refuses from what went wrong.
func (c *packageCall) failed(ctx context.Context, err error) Result {
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	var denied *envs.DeniedError
	if errors.As(err, &denied) {
		return Refused(denied.Reason)
	}
	return Failed(err.Error() + "; nothing was changed")
}

// look serves the actions that install nothing.
func (c *packageCall) look(conversation *envs.Conversation) Result {
	store := conversation.Store()
	current, _ := conversation.Current()
	result := Result{Status: StatusDone}
	name := c.request.Want.Environment
	if name == "" {
		name = current
	}
	var b strings.Builder
	switch c.request.Action {
	case "list":
		all, err := store.Environments()
		if err != nil {
			result.Notes = append(result.Notes, err.Error())
		}
		if !slices.ContainsFunc(all, func(e envs.Environment) bool { return e.Name == current }) {
			all = append(all, envs.Environment{Name: current})
		}
		for _, e := range all {
			fmt.Fprintf(&b, "%s: %s", e.Name, counted(len(e.Packages), "package", "packages"))
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
		fmt.Fprintf(&b, "environment %q: %s\n", name, counted(len(e.Packages), "package", "packages"))
		for _, p := range e.Packages {
			fmt.Fprintf(&b, "%s %s\n", p.Name, p.Version)
		}
	case "use":
		if err := conversation.Use(name); err != nil {
			return Failed(err.Error())
		}
		result.Environment = name
		fmt.Fprintf(&b, "the runs of this conversation have the environment %q now\n", name)
	case "status":
		request, err := store.Request(c.request.RequestID)
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

// canElicit reports whether the client can ask its user.
func canElicit(ctx context.Context) bool {
	c, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	return ok && c.GetClientCapabilities().Elicitation != nil
}
