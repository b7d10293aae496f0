package overlay

import "strings"

// sharedGit is what a run in a linked worktree may land in the repository that the worktree belongs to. The
// repository is also the one of other working trees, so of what it holds only that lands which git writes
// for this worktree: objects and refs, which are there for all, and the directory of the worktree.
type sharedGit struct {
	worktree string // its name in worktrees/
}

// mayHold reports whether something that lands can lie at rel, or, where that is a directory, below it.
func (s *sharedGit) mayHold(rel string, isDir bool) bool {
	names := strings.Split(rel, "/")
	if !isDir && strings.HasSuffix(rel, ".lock") {
		return false // git everywhere in the repository would wait for it
	}
	switch names[0] {
	case "objects":
		return len(names) == 1 || names[1] != "info" && !strings.HasPrefix(names[len(names)-1], "multi-pack-index")
	case "refs":
		// The first are the main worktree's own; the last puts other objects in the place of any.
		return len(names) == 1 || names[1] != "bisect" && names[1] != "worktree" && names[1] != "rewritten" && names[1] != "replace"
	case "logs":
		return len(names) == 1 && isDir || len(names) > 1 && names[1] == "refs"
	case "worktrees":
		return len(names) == 1 && isDir || len(names) > 1 && names[1] == s.worktree
	case "packed-refs":
		return len(names) == 1 && !isDir
	}
	return false
}

// shallowFile lists the commits whose parents a repository does without. What a run fetches is of no use without it,
// and with it the history of other branches can be cut off.
const shallowFile = "shallow"

// dir is the directory of the worktree itself.
func (s *sharedGit) dir() string { return "worktrees/" + s.worktree }

// own reports whether rel lies in the directory of the worktree itself.
func (s *sharedGit) own(rel string) bool {
	return strings.HasPrefix(rel+"/", "worktrees/"+s.worktree+"/")
}

// fixed reports whether what is at rel stays as it is: an object has its name from its content, and other
// worktrees need it even where this one does not.
func (s *sharedGit) fixed(rel string) bool {
	return strings.HasPrefix(rel+"/", "objects/")
}
