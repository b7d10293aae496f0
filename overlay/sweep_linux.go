package overlay

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/clearing"
	"airlock/internal/pattern"
)

// serverName is what a server calls its directory: its process, and a random number.
var serverName = pattern.Lazy(`^[0-9]+-[0-9a-f]{16}$`)

// ours makes sure that everything in BASE is of the kind that we leave there: a directory of that name can be
// someone else's, above all in a workspace, and nothing in it is to be swept.
func (s *scratch) ours() error {
	names, err := s.base.list("")
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case name == "lock", name == ".gitignore", name == historyName, name == waitingName:
		case strings.HasPrefix(name, interruptedPrefix), strings.HasPrefix(name, probePrefix), serverName().MatchString(name):
		default:
			return fmt.Errorf("%s is there and not airlock's own: %s is in it", Quote(s.base.path), Quote(name))
		}
	}
	return nil
}

// sweep removes the directories of servers that are gone; the lock on BASE is held.
func (s *scratch) sweep() error {
	names, err := s.base.list("")
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, interruptedPrefix) {
			s.addKept(name)
		}
	}
	return deadServers(s.base, s.clear)
}

// deadServers calls do with each server's directory in base whose server is gone. The lock on base is held, so that
// no server is between making its directory and locking it.
func deadServers(base *tree, do func(server *tree, name string) error) error {
	names, err := base.list("")
	if err != nil {
		return err
	}
	for _, name := range names {
		if !serverName().MatchString(name) {
			continue
		}
		server, err := base.sub(name)
		if is(err, unix.ENOTDIR, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		if unix.Flock(server.fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = do(server, name)
		}
		server.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// clear removes the directory of one dead server. A landing that it was at has been dealt with, unless
// there is doubt.
func (s *scratch) clear(server *tree, name string) error {
	if s.doubt {
		if err := s.keepLandings(server); err != nil {
			return err
		}
	}
	// The sandbox of a server that was killed just now may still write, for two seconds at most.
	// What that leaves is for the next start.
	if err := clearing.Beneath(s.base.fd, name); err != nil && !is(err, unix.ENOTEMPTY) {
		return err
	}
	return nil
}

// keepLandings puts the runs of a dead server aside that were at a landing.
func (s *scratch) keepLandings(server *tree) error {
	runs, err := server.list("")
	if err != nil {
		return err
	}
	for _, run := range runs {
		if names, err := server.list(joinPath(run, landingName)); err != nil || len(names) == 0 {
			continue
		}
		kept := freeName(s.base, interruptedPrefix+run)
		if err := unix.Renameat2(server.fd, run, s.base.fd, kept, unix.RENAME_NOREPLACE); err != nil {
			return server.fail("keep", run, err)
		}
		s.addKept(kept)
	}
	return nil
}

// freeName returns name, or the first of name-2 and so forth that is free in a directory of ours.
func freeName(dir *tree, name string) string {
	free := name
	for n := 2; ; n++ {
		if i, err := statAt(dir.fd, free); err != nil || i.kind == absent {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}
