package envs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// States of a [Request].
const (
	Waiting  = "waiting"
	Approved = "approved"
	Denied   = "denied"
)

// Request is a set of packages that waits for the user's answer, or has it. An answer is good for exactly
// this set: the hashes are part of it.
type Request struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	State   string    `json:"state"`
	// Environment is the name of the environment; Conversation is true if the set is for one conversation
	// only, on top of it.
	Environment  string `json:"environment"`
	Conversation bool   `json:"conversation,omitempty"`
	Language     string `json:"language"`
	Index        string `json:"index"`
	// Asked are the requirements, Question the text that the user is shown, Reason the model's words.
	Asked    []string `json:"asked"`
	Question string   `json:"question"`
	Reason   string   `json:"reason,omitempty"`
	// Names are those of the packages that nothing but this answer permits.
	Names []string `json:"names"`
	// Digest is of the whole set, and of what it is for.
	Digest string `json:"digest"`
}

// Validate implements document.
func (r *Request) Validate() error {
	switch {
	case !isID(r.ID):
		return errors.New("it has no id")
	case !slices.Contains([]string{Waiting, Approved, Denied}, r.State):
		return fmt.Errorf("%q is no state", clip(r.State, 40))
	case !isDigest(r.Digest):
		return errors.New("it has no digest")
	}
	return errors.Join(checkPackageNames(r.Language, r.Names), CheckName(r.Environment))
}

// checkPackageNames reports what can't be the name of a package of a language.
func checkPackageNames(language string, names []string) error {
	name := packageName()
	if language == LanguageR {
		name = rName()
	}
	for _, n := range names {
		if !name.MatchString(n) {
			return fmt.Errorf("%q is not a name of a package", clip(n, 80))
		}
	}
	return nil
}

// Grant is a standing permission: packages that may be installed into an environment without a question,
// in whatever version, from the index that they were asked about: what has a name in one index is nobody's word for
// what has it in another. The user gave it with an answer, and can revoke it.
type Grant struct {
	ID          string    `json:"id"`
	Created     time.Time `json:"created"`
	Environment string    `json:"environment"`
	Language    string    `json:"language,omitempty"` // "" is Python
	Index       string    `json:"index,omitempty"`    // without a password
	Names       []string  `json:"names"`
}

// covers reports whether a package that an index offers to an environment is granted.
func (g Grant) covers(environment, index string, p Package) bool {
	return g.Environment == environment && g.Index == index && (g.Language == LanguageR) == (p.language() == LanguageR) && slices.Contains(g.Names, p.Name)
}

// Validate implements document.
func (g *Grant) Validate() error {
	if !isID(g.ID) || len(g.Names) == 0 {
		return errors.New("it has no id or no package")
	}
	return errors.Join(checkPackageNames(g.Language, g.Names), CheckName(g.Environment))
}

// maxRequests bounds the requests that are kept; the oldest go first. A model can make any number.
const maxRequests = 100

// Leave returns the request for a digest that is there already, or else keeps r under a new id.
func (s *Store) Leave(ctx context.Context, r Request) (Request, error) {
	l, err := s.lock(ctx)
	if err != nil {
		return Request{}, err
	}
	defer l.Unlock()
	all, err := s.Requests()
	if err != nil {
		return Request{}, err
	}
	for _, old := range all {
		if old.Digest == r.Digest && old.State != Denied {
			return old, nil
		}
	}
	for len(all) >= maxRequests {
		_ = os.Remove(s.path("requests", all[0].ID+".json"))
		all = all[1:]
	}
	r.ID, r.Created, r.State = newID(), time.Now().UTC().Truncate(time.Second), Waiting
	return r, writeDocument(s.path("requests", r.ID+".json"), &r)
}

// Requests lists the requests, the oldest first. One that is damaged is an error beside the others.
func (s *Store) Requests() ([]Request, error) {
	all, err := documents[Request](s.path("requests"), nil)
	slices.SortStableFunc(all, func(a, b Request) int { return a.Created.Compare(b.Created) })
	return all, err
}

// Request returns the one with an id; an error that is [fs.ErrNotExist] if there is none.
func (s *Store) Request(id string) (Request, error) {
	var r Request
	if !isID(id) {
		return r, fs.ErrNotExist
	}
	err := readDocument(s.path("requests", id+".json"), &r)
	return r, err
}

// Answer records what the user said to a request. always leaves a grant for its packages as well.
func (s *Store) Answer(ctx context.Context, id string, yes, always bool) (Request, error) {
	l, err := s.lock(ctx)
	if err != nil {
		return Request{}, err
	}
	defer l.Unlock()
	r, err := s.Request(id)
	if err != nil {
		return r, err
	}
	r.State = Denied
	if yes {
		r.State = Approved
	}
	if yes && always {
		if err := s.grant(Grant{Language: r.Language, Environment: r.Environment, Index: r.Index, Names: r.Names}); err != nil {
			return r, err
		}
	}
	return r, writeDocument(s.path("requests", id+".json"), &r)
}

// Grants lists the standing grants, the oldest first.
func (s *Store) Grants() ([]Grant, error) {
	all, err := documents[Grant](s.path("grants"), nil)
	slices.SortStableFunc(all, func(a, b Grant) int { return a.Created.Compare(b.Created) })
	return all, err
}

// Grant leaves a standing permission, under a new id.
func (s *Store) Grant(ctx context.Context, g Grant) error {
	l, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return s.grant(g)
}

func (s *Store) grant(g Grant) error {
	g.ID, g.Created, g.Names = newID(), time.Now().UTC().Truncate(time.Second), slices.Sorted(slices.Values(g.Names))
	return writeDocument(s.path("grants", g.ID+".json"), &g)
}

// Revoke takes a grant back; an error that is [fs.ErrNotExist] if there is none. What was installed stays.
func (s *Store) Revoke(ctx context.Context, id string) error {
	if !isID(id) {
		return fs.ErrNotExist
	}
	l, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock()
	return os.Remove(s.path("grants", id+".json"))
}

// documents reads all of a directory, but for those of these ids.
func documents[T any, P interface {
	*T
	document
}](dir string, but map[string]bool) ([]T, error) {
	names, err := documentNames(dir)
	if err != nil {
		return nil, err
	}
	var all []T
	var errs []error
	for _, name := range names {
		if but[name] {
			continue
		}
		var d T
		err := readDocument(filepath.Join(dir, name+".json"), P(&d))
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone since
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, d)
		}
	}
	return all, errors.Join(errs...)
}
