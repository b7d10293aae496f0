package tools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"airlock/envs"
)

// An installation goes
//
//	plan -> (ask) -> apply
//
// where the plan, with the apply if nothing has to be asked, is one job, and the apply after an answer another: a
// call waits for them as for a run. A question ends a call's first part: a client of protocol 2026-07-28 gets it
// as its result and calls again with the answer, an older one is asked while the call goes on, and mcp-go calls
// the handler again. What was asked about stays here; the client holds a random name for it, which is good for
// one answer, and for the same arguments only.

// approveInput names our question in a result that asks.
const approveInput = "approve"

// packageCall serves one call of a package tool.
func (s *Server) packageCall(ctx context.Context, c call, t tool, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	r, err := t.packages(req.Params.RawArguments)
	if err != nil {
		return toolResult(ofPackages(Failed(err.Error()))), nil
	}
	if s.mustAskFirst(ctx, req) {
		return server.NewInputRequestBuilder("").Roots(rootsInput).ToolResult(), nil
	}
	if !r.installs() {
		return toolResult(s.look(ctx, c, r, req)), nil
	}
	pc := &packageCall{server: s, request: r, canAsk: canElicit(ctx) && r.Action == "install"}
	p := startProgress(c.token, s.every, c.notify)
	defer p.stop()
	var j *job
	switch {
	case req.Params.RequestState != "":
		what, refusal := pc.answered(req)
		if refusal != nil {
			return toolResult(*refusal), nil
		}
		place := c.ticket
		if r.Follow.RunID != "" { // the call is about a run that holds up no other
			c.ticket.leave()
			place = s.queue.take()
		}
		j, err = s.start(ctx, c, place, what, req, p)
		if err == nil && place != c.ticket {
			j.release()
		}
	case r.Follow.RunID != "":
		result := s.follow(ctx, c, r.Follow)
		if j, err = s.jobs.find(r.Follow.RunID); err != nil || r.Follow.Stop {
			return toolResult(result), nil
		}
		return pc.result(result, j), nil
	default:
		j, err = s.start(ctx, c, c.ticket, pc.planned(), req, p)
	}
	if err != nil {
		return toolResult(ofPackages(Failed(err.Error()))), nil
	}
	wait := s.waitOf(r.Follow)
	if s.opts.Tools.disables("package_install") {
		wait = math.MaxInt64 // with no tool that waits on for it, the call does
	}
	return pc.result(s.await(ctx, j, wait, p), j), nil
}

// packageCall is one call that installs.
type packageCall struct {
	server  *Server
	request packageRequest
	canAsk  bool

	// These are set when the job has its turn.
	conversation *envs.Conversation
	progress     func(string)
}

// task is one that does something with the environments of the conversation.
func (c *packageCall) task(do func(ctx context.Context, j *job) Result) task {
	return task{tool: c.request.Tool, about: strings.Join(c.request.Want.Requirements, " "), installs: true, do: func(ctx context.Context, j *job, runner Runner) Result {
		conversation, err := environmentsOf(ctx, runner, c.request.Tool)
		if err != nil {
			return Refused(err.Error())
		}
		c.conversation, c.progress = conversation, j.line
		if c.request.Want.Environment == "" {
			c.request.Want.Environment, _ = conversation.Current()
		}
		return do(ctx, j)
	}}
}

// environmentsOf gives the environments of the conversation to a tool that may have them.
func environmentsOf(ctx context.Context, runner Runner, tool string) (*envs.Conversation, error) {
	if err := runner.Permit(Request{Tool: tool}); err != nil {
		return nil, err
	}
	return runner.Environments(ctx)
}

// planned makes a plan, and installs it unless the user must be asked.
func (c *packageCall) planned() task {
	return c.task(func(ctx context.Context, j *job) Result {
		plan, err := c.conversation.Plan(ctx, c.request.Want, c.progress)
		if err != nil {
			return c.failed(ctx, err)
		}
		permitted, err := c.conversation.Permitted(ctx, plan)
		switch {
		case err != nil:
			return c.failed(ctx, err)
		case permitted:
			return c.apply(ctx, plan)
		case c.canAsk:
			return j.asks(plan)
		}
		return c.leave(ctx, plan)
	})
}

// asks has the next call that looks at the job ask the user. The result is for those that can't.
func (j *job) asks(plan *envs.Plan) Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.question = plan
	return Result{
		Status: StatusApproval, Environment: plan.Want.Environment,
		Reason: fmt.Sprintf("the user has to be asked: package_install with run_id=%q does. Nothing was installed", j.id),
	}
}

// takeQuestion gives the plan that a job which is done has to ask about, once.
func (j *job) takeQuestion() *envs.Plan {
	j.mu.Lock()
	defer j.mu.Unlock()
	plan := j.question
	if !j.isDone() || plan == nil {
		return nil
	}
	j.question = nil
	j.result.Reason = "the user was asked about this already. Nothing was installed by this run; call again with the same packages, without run_id, to have them asked anew"
	return plan
}

// result is what a call answers that has looked at a job: its result, or its question.
func (c *packageCall) result(r Result, j *job) *mcp.CallToolResult {
	if !c.canAsk {
		return toolResult(r)
	}
	plan := j.takeQuestion()
	if plan == nil {
		return toolResult(r)
	}
	state := c.server.pending.keep(c.request, plan)
	return server.NewInputRequestBuilder(state).Elicit(approveInput, mcp.ElicitationParams{
		Message: plan.Question(),
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

// answered goes on with a plan that the user was asked about, or says why not.
func (c *packageCall) answered(req mcp.CallToolRequest) (task, *Result) {
	refused := func(why string) (task, *Result) {
		r := ofPackages(Refused(why))
		return task{}, &r
	}
	plan := c.server.pending.take(req.Params.RequestState, c.request)
	if plan == nil {
		return refused("the answer belongs to no question that is open for exactly this call; call again without it")
	}
	answer := server.ElicitationResponse(req.Params.InputResponses, approveInput)
	if answer == nil || answer.Action != mcp.ElicitationResponseActionAccept {
		return refused("the user did not approve it; nothing was installed")
	}
	content, _ := answer.Content.(map[string]any)
	c.request.Want = plan.Want
	return c.task(func(ctx context.Context, _ *job) Result {
		if content["always"] == true {
			if err := c.conversation.Store().Grant(ctx, plan.Grant()); err != nil {
				return c.failed(ctx, err)
			}
		}
		installed, err := c.conversation.Apply(ctx, plan, c.progress)
		if errors.Is(err, envs.ErrChanged) {
			return Failed(err.Error() + "; what was approved does not fit any more. Call again")
		}
		if err != nil {
			return c.failed(ctx, err)
		}
		return c.done(plan, installed)
	}), nil
}

// leave leaves a request that the user answers on the command line.
func (c *packageCall) leave(ctx context.Context, plan *envs.Plan) Result {
	request, err := c.conversation.Leave(ctx, plan)
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
func (c *packageCall) apply(ctx context.Context, plan *envs.Plan) Result {
	for try := 1; ; try++ {
		if plan.Already || len(plan.Changes) == 0 {
			return c.nothing(plan)
		}
		installed, err := c.conversation.Apply(ctx, plan, c.progress)
		if err == nil {
			return c.done(plan, installed)
		}
		if !errors.Is(err, envs.ErrChanged) || try == maxTries {
			return c.failed(ctx, err)
		}
		if plan, err = c.conversation.Plan(ctx, c.request.Want, c.progress); err != nil {
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
	if note := c.whoSees(plan.Want); note != "" {
		result.Notes = append(result.Notes, note)
	}
	for _, p := range plan.Set {
		if p.Yanked && slices.ContainsFunc(installed.Changes, func(c envs.Change) bool { return c.Name == p.Name }) {
			result.Notes = append(result.Notes, fmt.Sprintf("%s %s was yanked: its author took it back", p.Name, p.Version))
		}
	}
	for _, change := range installed.Changes {
		result.Installed = append(result.Installed, Installed{Name: change.Name, Version: change.Version, Was: change.Was})
	}
	if len(installed.Missing) > 0 {
		result.Notes = append(result.Notes, "the host lacks shared libraries, so that these modules can't be imported: "+list(installed.Missing)+"; only the user can install them")
	}
	return result
}

// whoSees says which runs do not see what was installed; "" if all do.
func (c *packageCall) whoSees(w envs.Want) string {
	switch current, chosen := c.conversation.Current(); {
	case current != w.Environment:
		return fmt.Sprintf("the runs of this conversation have the environment %q; they see this one with environment: %q, or after python_env with the action \"use\"", current, w.Environment)
	case !chosen && w.Language != envs.LanguageR:
		return fmt.Sprintf("where the project has a .venv, run_python takes that unless environment: %q is given", w.Environment)
	}
	return ""
}

// skipped says what of the requirements came to nothing.
func skipped(plan *envs.Plan) []string {
	var notes []string
	if len(plan.Skipped) > 0 {
		notes = append(notes, "not installed, since the condition does not hold for this Python: "+list(plan.Skipped))
	}
	if len(plan.NoExtras) > 0 {
		notes = append(notes, "there are no such extras, and nothing came of them: "+list(plan.NoExtras))
	}
	return notes
}

// ofPackages makes a result one of a package tool.
func ofPackages(r Result) Result {
	r.ofPackages = true
	return r
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

// canElicit reports whether the client can ask its user.
func canElicit(ctx context.Context) bool {
	c, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	return ok && c.GetClientCapabilities().Elicitation != nil
}
