package envs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"airlock/internal/clearing"
	"airlock/internal/filelock"
)

// Store is the part of the state directory that holds environments. Any number of processes use one at a
// time.
//
//	lock                     held while a document is changed, and while garbage is collected
//	environments/NAME.json   the named environments, of Python packages; environments-r has those of R packages
//	environments/NAME.lock   held while one is changed, with all of the installation
//	requests/ID.json         what waits for the user's answer, or has it
//	grants/ID.json           standing permissions
//	conversations/ID.json    what a conversation has beside its environment; ID.lock is held by its server
//	layers/DIGEST/           root: what a set of wheels installs; layer.json: what it is
//	trees/DIGEST/root        what runs see at /env; trees/DIGEST.lease is shared by those who use it
//	wheels/SHA256/NAME       the wheels that layers were made of
//	stubs-DIGEST/            stand-ins for installers
//	work/ID/                 an installation that goes on; ID.lock is held by its server
type Store struct{ dir string }

// OpenStore opens the store in a directory, which it makes. Runs and installers must be of the user who owns
// it: others do not get to what is mounted from it.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir}
	for _, sub := range []string{"environments", "environments-r", "requests", "grants", "conversations", "layers", "trees", "wheels", "work"} {
		if err := os.MkdirAll(s.path(sub), 0o700); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

func (s *Store) lock(ctx context.Context) (*filelock.Lock, error) {
	return filelock.Wait(ctx, s.path("lock"), filelock.Alone)
}

// baseName is the name of the environment that holds python.base. No other can have it.
const baseName = ".base"

// Environment reads the Python packages of a named environment; one that is not there yet is empty.
func (s *Store) Environment(name string) (Environment, error) {
	return s.EnvironmentOf(LanguagePython, name)
}

// EnvironmentOf reads the packages of a language.
func (s *Store) EnvironmentOf(language, name string) (Environment, error) {
	e := Environment{Name: name, Language: language}
	if name != baseName {
		if err := CheckName(name); err != nil {
			return e, err
		}
	}
	err := readDocument(s.environmentFile(language, name), &e)
	if errors.Is(err, fs.ErrNotExist) {
		return Environment{Name: name, Language: language}, nil
	}
	return e, err
}

func (s *Store) environmentFile(language, name string) string {
	if name == baseName {
		name = "_base" // a name that no other environment can have, and no hidden file
	}
	if language == LanguageR {
		return s.path("environments-r", name+".json")
	}
	return s.path("environments", name+".json")
}

// allEnvironments are those of every language, with the base.
func (s *Store) allEnvironments() ([]Environment, error) {
	all, err := documents[Environment](s.path("environments"), nil)
	ofR, errR := documents[Environment](s.path("environments-r"), nil)
	return append(all, ofR...), errors.Join(err, errR)
}

// Environments lists the named environments that have packages, those of Python first.
func (s *Store) Environments() ([]Environment, error) {
	all, err := s.allEnvironments()
	var named []Environment
	for _, e := range all {
		if e.Name != baseName && len(e.Packages) > 0 {
			named = append(named, e)
		}
	}
	return named, err
}

// work is a directory of its own for one installation.
type work struct {
	dir  string
	lock *filelock.Lock
	path string // of the lock
}

func (s *Store) newWork() (*work, error) {
	id := newID()
	w := &work{dir: s.path("work", id), path: s.path("work", id+".lock")}
	var err error
	// Somebody who collects garbage may look whether the lock is held just before it is.
	if w.lock, err = filelock.Wait(context.Background(), w.path, filelock.Alone); err != nil {
		return nil, err
	}
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// close removes it with all that is in it.
func (w *work) close() {
	_ = clearing.Tree(w.dir) // else it is garbage for the next server
	_ = os.Remove(w.path)
	w.lock.Unlock()
}
