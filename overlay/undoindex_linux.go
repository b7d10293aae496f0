package overlay

import "strings"

// Any git status renews what an index remembers of files' times, soon after a landing has brought them. So an
// entry of the history has a digest of the index that landed, and an undo goes by that.

// isIndex reports whether the step is about an index of git.
func (s step) isIndex() bool {
	if s.unit == "" || s.kind != putNew && s.kind != swapIn {
		return false
	}
	rel := inUnit(s.unit, s.path)
	if names := strings.Split(rel, "/"); len(names) == 3 && names[0] == "worktrees" {
		rel = names[2]
	}
	return rel == "index"
}

// indexAt reads the index at a path of the workspace, nil where there is none that can be read.
func (w *Workspace) indexAt(path string) []byte {
	i, err := w.root.stat(path)
	if err != nil || i.kind != regular {
		return nil
	}
	f, err := w.root.file(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	d, err := readIndex(f)
	if err != nil {
		return nil
	}
	return d[:]
}
