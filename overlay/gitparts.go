package overlay

import (
	"slices"
	"strings"

	"airlock/internal/pattern"
)

// gitPart is what a path in a git directory is to the state of the repository.
type gitPart uint8

const (
	gitState   gitPart = iota // one with the rest: refs, a merge that goes on, and whatever is not known
	gitObjects                // named by their content: those of both sides go together
	gitIndex                  // what will be committed
	gitRecord                 // reflogs, and what the last command left to be looked up
)

// gitRecords are files that no state depends on.
var gitRecords = []string{"ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "description", "gitk.cache"}

// partOf returns the part of rel, a path relative to a git directory.
func partOf(rel string) gitPart {
	names := strings.Split(rel, "/")
	if len(names) > 2 && names[0] == "worktrees" {
		names = names[2:]
	}
	switch {
	case names[0] == "objects":
		return gitObjects
	case rel == "index":
		return gitIndex
	case names[0] == "logs" || len(names) == 1 && slices.Contains(gitRecords, names[0]):
		return gitRecord
	}
	return gitState
}

// isGitLock reports whether a file of that name, in a git directory, says that a git is at work. No ref can
// have such a name.
func isGitLock(rel string) bool {
	return strings.HasSuffix(rel, ".lock") || rel == "gc.pid"
}

// newObjects are the paths of what git adds to the objects of a repository: a file of one object, a
// directory of such, and the files of a pack.
var newObjects = pattern.Lazy(`^objects/([0-9a-f]{2}(/[0-9a-f]{38}([0-9a-f]{24})?)?|pack/pack-[0-9a-f]{40}([0-9a-f]{24})?\.(pack|idx|rev))$`)

// unitPath returns the path of a unit's git directory as the walk spells it.
func unitPath(unit string) string {
	if unit == "." {
		return ""
	}
	return unit
}

// inUnit returns a path of the workspace relative to the git directory of a unit.
func inUnit(unit, path string) string {
	if unit == "." {
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, unit), "/")
}
