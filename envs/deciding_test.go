package envs_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"airlock/envs"
)

func TestDeciding(t *testing.T) {
	w := newWorld(t)
	w.config.Allow, w.config.Deny = []string{"six<1.17"}, []string{"Zope_Interface"}
	c := w.begin()
	plan := func(requirement string) (*envs.Plan, error) {
		return c.Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{requirement}, Reason: "it is\n\x1b[31mneeded\u202e"}, nil)
	}
	var denied *envs.DeniedError
	if _, err := plan("zope.interface[test]"); !errors.As(err, &denied) || !strings.Contains(err.Error(), "packages.deny") {
		t.Errorf("what is denied by another spelling: %v", err)
	}
	p, err := plan("needs-six")
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Asked(); !slices.Equal(got, []string{"needs-six", "six"}) { // six 1.17 is not what is allowed
		t.Errorf("asked about %q", got)
	}
	question := p.Question()
	for _, want := range []string{"needs-six 1.0", "six 1.17.0", "needed by needs-six", "http://index.test/simple", `environment "default"`, `"it is`} {
		if !strings.Contains(question, want) {
			t.Errorf("the question lacks %q:\n%s", want, question)
		}
	}
	if strings.Contains(question, "secret") || strings.ContainsAny(question, "\x1b\u202e") || strings.Contains(question, "is\n\x1b") {
		t.Errorf("the question holds what it must not:\n%q", question)
	}
	if p, err = plan("sixx"); err != nil || p.Decision.Near["sixx"] != "six" || !strings.Contains(p.Question(), "NOT six") {
		t.Errorf("a name that is easily taken for an allowed one: %v, %+v", err, p.Decision)
	}

	w.config.Approve = "allowlist"
	if _, err := w.begin().Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{"flex"}}, nil); !errors.As(err, &denied) || !strings.Contains(err.Error(), "packages.allow") {
		t.Errorf("with approve = allowlist: %v", err)
	}
	w.config.Approve = "never"
	if _, err := w.begin().Plan(t.Context(), envs.Want{Environment: "default", Requirements: []string{"six==1.16.0"}}, nil); !errors.As(err, &denied) {
		t.Errorf("with approve = never: %v", err)
	}
	if n := w.installer.Steps("fetch") + w.installer.Steps("install"); n != 0 {
		t.Errorf("%d steps beyond resolving", n)
	}
}

// Where the interpreter has no pip, it is said what brings one; what needs none works.
func TestWithoutPip(t *testing.T) {
	w := newWorld(t)
	w.config.Allow = []string{"six"}
	if _, _, err := install(w.begin(), "default", "six"); err != nil {
		t.Fatal(err)
	}
	w.installer.NoPip = true
	c := w.begin()
	if _, _, err := install(c, "other", "six>=1.17"); err == nil || !strings.Contains(err.Error(), "python3-pip") || !strings.Contains(err.Error(), "python.interpreter") {
		t.Errorf("error %v", err)
	}
	if _, p, err := install(c, "default", "six"); err != nil || !p.Already {
		t.Errorf("what is there: %+v, %v", p, err)
	}
	w.installer.OldPip = "22.0.2"
	if _, _, err := install(w.begin(), "other", "six>=1.17"); err == nil || !strings.Contains(err.Error(), "has pip 22.0.2") || !strings.Contains(err.Error(), "22.3 or later") {
		t.Errorf("with an old pip: %v", err)
	}
	if got := w.sees(c, "default", "six"); got != "1.17.0" {
		t.Errorf("runs see six %s", got)
	}
	w.clean()
}

// An approval is good for one set in one environment, once.
func TestApproving(t *testing.T) {
	w := newWorld(t)
	c := w.begin()
	ctx := t.Context()
	want := envs.Want{Environment: "default", Requirements: []string{"needs-six"}}
	plan := func(want envs.Want) *envs.Plan {
		t.Helper()
		p, err := c.Plan(ctx, want, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	permitted := func(p *envs.Plan) bool {
		t.Helper()
		ok, err := c.Permitted(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	p := plan(want)
	r, err := c.Leave(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Leave(ctx, p); err != nil || again.ID != r.ID {
		t.Errorf("the same request twice: %v, %v", again.ID, err)
	}
	if permitted(p) {
		t.Error("permitted while it waits")
	}
	if _, err := c.Store().Answer(ctx, r.ID, true, false); err != nil {
		t.Fatal(err)
	}
	if permitted(plan(envs.Want{Environment: "other", Requirements: []string{"needs-six"}})) {
		t.Error("permitted for another environment")
	}
	if permitted(plan(envs.Want{Environment: "default", Requirements: []string{"needs-six"}, Conversation: true})) {
		t.Error("permitted for a conversation instead")
	}
	if permitted(plan(envs.Want{Environment: "default", Requirements: []string{"needs-six", "flex"}})) {
		t.Error("permitted for a larger set")
	}
	// The index changes the wheel under the same version.
	old := w.installer.Wheels
	w.installer.Wheels = index()
	w.installer.Wheels[2].Files["six.py"] = "V = 'evil'\n"
	if permitted(plan(want)) {
		t.Error("permitted for another file of the same name")
	}
	if _, err := c.Apply(ctx, p, nil); err == nil {
		t.Error("what was approved was installed from another file")
	}
	w.installer.Wheels = old
	lost := errors.New("the network is gone")
	w.installer.Before = func(_ context.Context, step string) error {
		if step == "fetch" {
			return lost
		}
		return nil
	}
	if !permitted(p) {
		t.Error("not permitted although it was approved")
	}
	if _, err := c.Apply(ctx, p, nil); !errors.Is(err, lost) {
		t.Error(err)
	}
	w.installer.Before = nil
	if !permitted(p) {
		t.Error("an approval is used up by an installation that failed")
	}
	if _, err := c.Apply(ctx, p, nil); err != nil {
		t.Error(err)
	}
	if permitted(p) {
		t.Error("an approval is good twice")
	}

	// Two conversations see one approval at once.
	here, other := envs.Want{Environment: "default", Requirements: []string{"sixx"}, Conversation: true}, w.begin()
	p = plan(here)
	if r, err = c.Leave(ctx, p); err == nil {
		_, err = c.Store().Answer(ctx, r.ID, true, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.Plan(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := other.Permitted(ctx, second); !ok || err != nil || !permitted(p) {
		t.Errorf("not permitted although it was approved: %v", err)
	}
	if _, err := c.Apply(ctx, p, nil); err != nil {
		t.Error(err)
	}
	if _, err := other.Apply(ctx, second, nil); err == nil || !strings.Contains(err.Error(), "was used up meanwhile") {
		t.Errorf("an approval was good for two: %v", err)
	}

	p = plan(envs.Want{Environment: "default", Requirements: []string{"flex"}})
	if r, err = c.Leave(ctx, p); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Store().Answer(ctx, r.ID, false, false); err != nil {
		t.Fatal(err)
	}
	var denied *envs.DeniedError
	if _, err := c.Permitted(ctx, p); !errors.As(err, &denied) {
		t.Errorf("after a denial: %v", err)
	}
	if err := c.Store().Grant(ctx, p.Grant()); err != nil {
		t.Fatal(err)
	}
	if p = plan(p.Want); len(p.Decision.Ask) > 0 {
		t.Errorf("asked in spite of a grant: %v", p.Asked())
	}

	// What was approved and then installed otherwise leaves no approval.
	late := plan(envs.Want{Environment: "late", Requirements: []string{"flex"}})
	if r, err = c.Leave(ctx, late); err == nil {
		_, err = c.Store().Answer(ctx, r.ID, true, false)
	}
	if _, applyErr := c.Apply(ctx, late, nil); err != nil || applyErr != nil { // as after an elicitation
		t.Fatal(err, applyErr)
	}
	if _, err := c.Store().Request(r.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an approval outlives its installation: %v", err)
	}
	c = w.begin() // another conversation, with the same words for other packages
	if p = plan(envs.Want{Environment: "other", Requirements: []string{"flex"}}); len(p.Decision.Ask) == 0 {
		t.Error("not asked, since another environment has a grant")
	}
	flex := envs.Want{Environment: "default", Requirements: []string{"flex"}}
	w.config.Index = "http://user:secret@index.test/other"
	c = w.begin()
	if p = plan(flex); len(p.Decision.Ask) == 0 {
		t.Error("not asked about what another index has under a name that was granted")
	}
	w.config.Index = "http://user:changed@index.test/simple"
	c = w.begin()
	if p = plan(flex); len(p.Decision.Ask) > 0 {
		t.Errorf("asked in spite of a grant, with another password: %v", p.Asked())
	}
	grants, err := c.Store().Grants()
	if err != nil || len(grants) != 1 {
		t.Fatalf("grants: %v, %v", grants, err)
	}
	if err := c.Store().Revoke(ctx, grants[0].ID); err != nil {
		t.Fatal(err)
	}
	if p = plan(p.Want); len(p.Decision.Ask) == 0 {
		t.Error("not asked although the grant was revoked")
	}
}
