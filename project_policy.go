package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"

	"airlock/internal/untrusted"
)

// policyName is the file in which a project says what runs in it may do. Whoever can write the
// workspace writes it, a run included, so it is an attacker's file: it is read as one, quoted never,
// and may only narrow what the user allows.
const policyName = ".airlock.toml"

// maxPolicy bounds the file, in bytes.
const maxPolicy = 64 << 10

// projectPolicy is the policy file of a workspace, as it was when it was read. It is read once; what
// is judged, shown, trusted and put into force is this copy.
type projectPolicy struct {
	workspace string // real path
	doc       document

	// changed is that the file was trusted with another content than this, which is not.
	changed bool
}

// readProjectPolicy returns nil if the workspace has no policy file. A file that can't be read as it
// should is an error, not an absent policy: it may have been meant to narrow.
func readProjectPolicy(workspace string) (*projectPolicy, error) {
	text, err := untrusted.ReadFile(workspace, policyName, maxPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault{
			Where: policyName, Msg: cause(err).Error(),
			Hint: fmt.Sprintf("the project policy must be a regular file of at most %d KiB that you may read; mend or remove it", maxPolicy>>10),
		}
	}
	return &projectPolicy{
		workspace: workspace,
		doc:       document{origin: origin{Kind: fromPolicy, Name: policyName}, text: text, secret: true},
	}, nil
}

// digest names the content: what is trusted is this and no other.
func (p *projectPolicy) digest() string {
	sum := sha256.Sum256(p.doc.text)
	return hex.EncodeToString(sum[:])
}

// change is what a project policy would make of one key.
type change struct {
	key      configKey
	origin   origin
	from, to any
	widens   string // why the change is more than narrowing; "" if it narrows or changes nothing
}

// changes judges each key of the policy against what the user says.
func (p *projectPolicy) changes(user settings) ([]change, error) {
	d, err := p.doc.decode()
	if err != nil {
		return nil, err
	}
	if err := p.wrong(d, user.home); err != nil {
		return nil, err
	}
	var all []change
	for _, key := range d.keys {
		c := change{key: key, origin: p.doc.at(d.lines[key.name]), from: key.get(&user.Config)}
		theirs := key.get(&d.config)
		n, may := narrowings[key.name]
		switch {
		case may && n.adds:
			c.to = union(c.from.([]string), theirs.([]string))
			if n.narrows != nil && !n.narrows(c.from, theirs) {
				c.widens = "takes back what others in the list say"
			}
		case may && user.overrides(key):
			continue // a flag or a variable wins anyway
		case may:
			c.to = theirs
			if !n.narrows(c.from, theirs) {
				c.widens = "widens what you allow"
			}
		default:
			c.to, c.widens = key.fromHome(theirs, user.home), "may not be set by a project"
			if user.overrides(key) {
				c.to = c.from
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// wrong says which values of the policy no configuration takes, whatever else is in it. That is said before anybody is asked to trust
// the policy, which would not make them good.
func (p *projectPolicy) wrong(d decoded, home string) error {
	var faults []error
	for _, key := range d.keys {
		s := settings{Config: Defaults(), origins: map[string][]origin{key.name: {p.doc.at(d.lines[key.name])}}}
		key.set(&s.Config, key.fromHome(key.get(&d.config), home))
		err := s.Config.Validate()
		if err == nil {
			continue
		}
		for _, one := range flatten(err) {
			name, msg, _ := strings.Cut(one.Error(), ": ")
			if element().ReplaceAllString(name, "") != key.name || namesKey(msg) {
				continue // it is wrong beside another key, which is judged with the user's
			}
			one = s.attribute(one)
			if _, may := narrowings[key.name]; !may {
				one.(*fault).Msg += "; and a project may not set this key unless you trust it"
			}
			faults = append(faults, one)
		}
	}
	return errors.Join(faults...)
}

// namesKey reports whether a text has the name of a key in it.
func namesKey(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		_, known := findKey(strings.Trim(word, ",;:"))
		return known
	})
}

// overrides reports whether the user set the key in a way that wins over a project's policy.
func (s settings) overrides(key configKey) bool {
	for _, o := range s.origins[key.name] {
		if o.Kind == fromVariable || o.Kind == fromFlag {
			return true
		}
	}
	return false
}

// under returns the settings that hold in the policy's workspace. A policy that does more than narrow
// is an error unless the user trusted exactly this content in exactly this place.
func (s settings) under(p *projectPolicy, trusted bool) (settings, error) {
	changes, err := p.changes(s)
	if err != nil {
		return settings{}, err
	}
	if !trusted {
		var faults []error
		since := ""
		if p.changed {
			since = "; the file was trusted, and has changed since"
		}
		for _, c := range changes {
			if c.widens != "" {
				faults = append(faults, &fault{
					Where: c.origin.String(), Key: c.key.name, Msg: c.widens + "; a project policy may only narrow" + since,
					Hint: "read the file, then `" + p.trustCommand() + "` accepts it as it is now; or remove the key",
				})
			}
		}
		if len(faults) > 0 {
			if _, err := s.apply(changes); err != nil { // trust would be refused
				for _, f := range faults {
					f.(*fault).Hint = "mend or remove the keys"
				}
				faults = append(faults, err)
			}
			return settings{}, errors.Join(faults...)
		}
	}
	return s.apply(changes)
}

// apply puts changes into force and validates the result.
func (s settings) apply(changes []change) (settings, error) {
	s = s.clone()
	for _, c := range changes {
		if !narrowings[c.key.name].adds && s.overrides(c.key) {
			continue // the value, and where it comes from, stay the user's
		}
		c.key.set(&s.Config, c.to)
		if narrowings[c.key.name].adds {
			s.origins[c.key.name] = append(s.origins[c.key.name], c.origin)
		} else {
			s.origins[c.key.name] = []origin{c.origin}
		}
	}
	// A shorter longest time takes the usual one with it, where the user did not insist on that.
	timeout, _ := findKey("limits.timeout")
	if from := s.origins["limits.max_timeout"]; s.Limits.Timeout > s.Limits.MaxTimeout && isPolicy(from) && !s.overrides(timeout) {
		s.Limits.Timeout = s.Limits.MaxTimeout
		s.origins["limits.timeout"] = from
	}
	return s, s.check()
}

// trustCommand names the workspace: who reads of it in a client, or from a model, is in no directory.
func (p *projectPolicy) trustCommand() string {
	if strings.ContainsFunc(p.workspace, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "airlock trust" // whatever is printed there should not act on the terminal
	}
	return "airlock trust --workspace " + shellWord(p.workspace)
}

func isPolicy(from []origin) bool {
	return len(from) > 0 && from[len(from)-1].Kind == fromPolicy
}
