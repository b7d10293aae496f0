package envs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Plan resolves what is wanted and says what it would change. It installs nothing. The error is a
// [*DeniedError] where the configuration refuses it, whatever the user says.
func (c *Conversation) Plan(ctx context.Context, w Want, progress func(string)) (*Plan, error) {
	if err := CheckName(w.Environment); err != nil {
		return nil, err
	}
	if c.packages.Approve == "never" {
		return nil, &DeniedError{Reason: `nothing is installed here: packages.approve is "never"`}
	}
	resolve := c.planPython
	if w.Language == LanguageR {
		resolve = c.planNamedR
	}
	p, err := resolve(ctx, w, progress)
	if err != nil {
		return p, err
	}
	return p, c.refusesToAsk(p.Decision, p.section())
}

// refusesToAsk is a [*DeniedError] where the user would have to be asked and the configuration wants no questions.
func (c *Conversation) refusesToAsk(d Decision, section string) error {
	if len(d.Ask) == 0 || c.packages.Approve != "allowlist" {
		return nil
	}
	return &DeniedError{Reason: fmt.Sprintf(`%s is not on %s.allow, and packages.approve is "allowlist"; the user can add it to the user file`, shortSet(d.Ask), section)}
}

// planPython plans for Python packages.
func (c *Conversation) planPython(ctx context.Context, w Want, progress func(string)) (*Plan, error) {
	py, err := c.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	base, err := c.base(ctx, py, progress)
	if err != nil {
		return nil, err
	}
	env, err := c.store.Environment(w.Environment)
	if w.Conversation {
		env, w.again, err = c.standing(w.Environment)
	}
	if err != nil {
		return nil, err
	}
	return c.plan(ctx, py, base, env, w, progress)
}

// planNamedR plans for the R packages of a named environment.
func (c *Conversation) planNamedR(ctx context.Context, w Want, progress func(string)) (*Plan, error) {
	if w.Conversation {
		return nil, errors.New("packages of R are installed into a named environment only, by package_install")
	}
	h, err := c.r(ctx)
	if err != nil {
		return nil, err
	}
	env, err := c.store.EnvironmentOf(LanguageR, w.Environment)
	if err != nil {
		return nil, err
	}
	return c.planR(ctx, h, env, w, progress)
}

// Permitted reports whether a plan needs no question, or was approved on the command line; that approval is
// used up when the plan has been applied. A set that the user denied is a [*DeniedError].
func (c *Conversation) Permitted(ctx context.Context, p *Plan) (bool, error) {
	if len(p.Decision.Ask) == 0 {
		return true, nil
	}
	all, err := c.store.Requests()
	if err != nil {
		return false, err
	}
	for _, r := range all {
		if r.Digest == p.Digest && r.State == Denied {
			return false, &DeniedError{Reason: fmt.Sprintf("the user denied exactly this set (request %s)", r.ID)}
		}
	}
	i := slices.IndexFunc(all, func(r Request) bool { return r.Digest == p.Digest && r.State == Approved })
	if i < 0 {
		return false, nil
	}
	p.approval = all[i].ID
	return true, nil
}

// spend uses up the approval that a plan has, and any other that exactly this set would have: however it was permitted,
// it is there now, and no answer to it is good for later. The lock of the store is held.
func (s *Store) spend(p *Plan) error {
	if p.approval != "" {
		err := os.Remove(s.path("requests", p.approval+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the approval %s was used up meanwhile", p.approval)
		}
		if err != nil {
			return err
		}
	}
	all, _ := s.Requests() // one that can't be read permits nothing
	for _, r := range all {
		if r.Digest == p.Digest && r.State != Denied {
			if err := os.Remove(s.path("requests", r.ID+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// Leave leaves a request for the user's answer, or returns the one that waits for this plan already.
func (c *Conversation) Leave(ctx context.Context, p *Plan) (Request, error) {
	reason := []rune(p.Want.Reason)
	return c.store.Leave(ctx, Request{
		Environment: p.Want.Environment, Conversation: p.Want.Conversation, Language: p.runtime.language(), Index: p.index,
		Asked: p.Want.Requirements, Question: p.Question(), Reason: string(reason[:min(len(reason), maxReason)]),
		Names: p.Asked(), Digest: p.Digest,
	})
}

// Asked names the packages that the user is asked about.
func (p *Plan) Asked() []string {
	names := make([]string, len(p.Decision.Ask))
	for i, a := range p.Decision.Ask {
		names[i] = a.Name
	}
	return names
}

// Grant is the standing permission that the user gives with "always".
func (p *Plan) Grant() Grant {
	return Grant{Environment: p.Want.Environment, Language: p.runtime.language(), Index: p.index, Names: p.Asked()}
}

// section is the one of the configuration that decides on the packages of a plan.
func (p *Plan) section() string {
	if p.runtime.language() == LanguageR {
		return "packages.r"
	}
	return "packages"
}
