package tools

import (
	"crypto/rand"
	"sync"

	"airlock/envs"
)

// pendingPlans are the plans that the user is being asked about, by a name that nobody can guess.
type pendingPlans struct {
	mu    sync.Mutex
	plans map[string]pendingPlan
	order []string // the oldest first
}

type pendingPlan struct {
	request packageRequest
	plan    *envs.Plan
}

// maxPending bounds the questions that are open; the oldest is given up. Each is a resolved set.
const maxPending = 32

// keep gives a plan a name.
func (p *pendingPlans) keep(r packageRequest, plan *envs.Plan) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plans == nil {
		p.plans = map[string]pendingPlan{}
	}
	if len(p.order) == maxPending {
		delete(p.plans, p.order[0])
		p.order = p.order[1:]
	}
	name := rand.Text()
	p.plans[name] = pendingPlan{r, plan}
	p.order = append(p.order, name)
	return name
}

// take gives the plan of a name back, once, and only to a call that asks for the same.
func (p *pendingPlans) take(name string, r packageRequest) *envs.Plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.plans[name]
	if !ok || !found.request.same(r) {
		return nil
	}
	delete(p.plans, name)
	for i, n := range p.order {
		if n == name {
			p.order = append(p.order[:i:i], p.order[i+1:]...)
			break
		}
	}
	return found.plan
}
