package main

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
)

// idle names the settings that have no effect because of another one. Nothing is wrong with them, so they are told and not
// refused. What closes the network over such a list on purpose, as a variable over a file or a project over the user, is no
// reason to say anything.
func (s settings) idle() []*fault {
	var all []*fault
	for _, name := range []string{"network.allow", "network.deny"} {
		key, _ := findKey(name)
		if len(key.get(&s.Config).([]string)) == 0 {
			continue
		}
		modeKey, _ := findKey("network.mode")
		list, mode := last(s.originsOf(key)), last(s.originsOf(modeKey))
		if mode.Kind.rank() > list.Kind.rank() {
			continue
		}
		f := &fault{Where: list.String(), Key: name}
		switch {
		case s.Network.Mode == "deny":
			f.Msg = fmt.Sprintf(`has no effect, since network.mode is "deny" (%s): runs reach no host at all`, mode)
			f.Hint = `network.mode = "allowlist" lets runs reach the hosts of network.allow`
			if name == "network.deny" {
				f.Hint += `, "allow" every public address but those of network.deny`
			}
			if list.Kind == fromPolicy && mode.Kind != fromPolicy {
				f.Hint += "; that is for your own configuration to say, not for a project's"
			}
		case s.Network.Mode == "allow" && name == "network.allow":
			f.Msg = fmt.Sprintf(`narrows nothing, since network.mode is "allow" (%s): runs reach every public address`, mode)
			f.Hint = `network.mode = "allowlist" lets runs reach these hosts and no other`
		default:
			continue
		}
		all = append(all, f)
	}
	return all
}

// idleNote is one of them as the JSON of policy and doctor has it.
type idleNote struct {
	Text string `json:"text"`
	Mend string `json:"mend"`
}

// notes never returns nil, which would be null.
func (s settings) notes() []idleNote {
	all := []idleNote{}
	for _, f := range s.idle() {
		all = append(all, idleNote{f.Error(), f.Hint})
	}
	return all
}

// rank is the place of a kind among those that can set a key.
func (k originKind) rank() int {
	return slices.Index([]originKind{fromDefault, fromFile, fromPolicy, fromVariable, fromFlag}, k)
}

func last(from []origin) origin { return from[len(from)-1] }

// idleLog logs the settings that have no effect, each once for as long as it has none. It may be called by several at once.
type idleLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said []string
}

func (l *idleLog) say(s settings) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var now []string
	for _, f := range s.idle() {
		text := forModel(f).Error()
		if now = append(now, text); !slices.Contains(l.said, text) {
			l.log.Warn(text)
		}
	}
	l.said = now
}
