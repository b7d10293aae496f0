package envs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"airlock/internal/filelock"
)

// Removed is what [Store.Remove] took away.
type Removed struct {
	Environments []Environment // what each language's had
	Grants       []Grant
}

// Remove empties a named environment, of both languages, and revokes the grants for it: whoever makes one of that name anew asks
// anew. Runs that have it go on with what they began with; the layers are garbage. The error is [fs.ErrNotExist] where there is
// no such environment and no grant for one, and [filelock.ErrHeld] while something is being installed into it; one that is not of
// writing is from before anything went.
func (s *Store) Remove(ctx context.Context, name string) (Removed, error) {
	var r Removed
	if err := CheckName(name); err != nil {
		return r, err
	}
	for _, language := range []string{LanguagePython, LanguageR} {
		lock := strings.TrimSuffix(s.environmentFile(language, name), ".json") + ".lock"
		if _, err := os.Stat(lock); errors.Is(err, fs.ErrNotExist) {
			continue // nothing was ever installed into it, and nothing should be left of asking
		}
		held, err := filelock.Try(lock, filelock.Alone)
		if err != nil {
			return r, err
		}
		defer held.Unlock()
	}
	all, err := s.lock(ctx)
	if err != nil {
		return r, err
	}
	defer all.Unlock()
	// All is read before anything goes.
	grants, err := s.Grants()
	if err != nil {
		return r, err
	}
	for _, language := range []string{LanguagePython, LanguageR} {
		e, err := s.EnvironmentOf(language, name)
		if err != nil {
			return r, err
		}
		if len(e.Packages) > 0 {
			r.Environments = append(r.Environments, e)
		}
	}
	for _, g := range grants {
		if g.Environment == name {
			if err := os.Remove(s.path("grants", g.ID+".json")); err != nil {
				return r, err
			}
			r.Grants = append(r.Grants, g)
		}
	}
	for _, e := range r.Environments {
		// The document stays, so that the generation goes on: who planned for what was there must not take what comes for it.
		empty := Environment{Name: e.Name, Language: e.Language, Generation: e.Generation + 1}
		if err := writeDocument(s.environmentFile(e.Language, name), &empty); err != nil {
			return r, err
		}
	}
	if len(r.Environments)+len(r.Grants) == 0 {
		return r, fmt.Errorf("the environment %q: %w", name, fs.ErrNotExist)
	}
	return r, nil
}
