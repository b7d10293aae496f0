package overlay

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"airlock/internal/gitconfig"
	"airlock/internal/untrusted"
)

// A workspace can have its git directory elsewhere: a linked worktree and a submodule have a file .git that
// names it, and a person can put a link there. Who wrote the .git is not known (it came with whatever was
// checked out), so what it says is only where to look. The directory is used if it says itself that this
// workspace is its working tree, and if it is the workspace's owner's.

// gitLink is a git directory outside of the workspace that is used.
type gitLink struct {
	dir      string // its real path; of a linked worktree, that of the repository's common directory
	worktree string // the name of a linked worktree in dir/worktrees, "" for none
	via      string // the absolute, clean path that git reaches it by; links can be on it
}

// gitLinkError is that a .git names a directory that is not used.
type gitLinkError struct {
	named string // as the .git has it
	why   string
}

func (e *gitLinkError) Error() string {
	return "The git directory " + Quote(e.named) + ", which .git names, is outside of the workspace and was not made visible: " + e.why + "."
}

// gitPointerLimit is how much is read of files that git has for pointing at each other, in bytes.
const gitPointerLimit = 8 << 10

// gitLink looks for a git directory outside of the workspace. It is nil where there is none to use; the
// error then says why, if a .git names one.
func (w *Workspace) gitLink() (*gitLink, error) {
	dot, err := w.root.stat(".git")
	if err != nil {
		return nil, nil
	}
	var named string
	switch dot.kind {
	case symlink:
		if named, err = w.root.readlink(".git"); err != nil {
			return nil, nil
		}
	case regular:
		text, err := untrusted.ReadFile(w.root.path, ".git", gitPointerLimit)
		rest, found := bytes.CutPrefix(text, []byte("gitdir: "))
		if err != nil || !found {
			return nil, nil // for git it names nothing either
		}
		named = string(bytes.TrimRight(rest, "\r\n"))
	default:
		return nil, nil
	}
	if named == "" || strings.ContainsRune(named, 0) {
		return nil, nil
	}
	link, why := w.followGit(named)
	if why != nil {
		return nil, &gitLinkError{named, why.Error()}
	}
	return link, nil
}

// followGit judges the git directory that a .git names. Both results are nil for one in the workspace.
func (w *Workspace) followGit(named string) (*gitLink, error) {
	path := named
	if !filepath.IsAbs(path) {
		path = w.root.path + "/" + path
	}
	via := filepath.Clean(path)
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if within(via, own) && !within(via, "/dev/shm") {
			return nil, errors.New(own + " is no place for one")
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("it is not there")
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	if within(real, w.root.path) {
		return nil, nil
	}
	if again, err := filepath.EvalSymlinks(via); err != nil || again != real {
		return nil, errors.New("the way to it goes up from a link")
	}
	dir, err := openTree(real)
	if is(err, unix.ENOTDIR) {
		return nil, errors.New("it is no directory")
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	defer dir.close()
	link := &gitLink{dir: real, via: via}
	common, err := dir.stat("commondir")
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case common.kind == absent:
		err = w.mutualDir(real)
	default:
		link.dir, link.worktree = filepath.Dir(filepath.Dir(real)), filepath.Base(real)
		err = w.mutualWorktree(real, link.dir)
	}
	if err == nil {
		err = w.usableGit(real, link)
	}
	if err != nil {
		return nil, err
	}
	return link, nil
}

// mutualWorktree makes sure that git, a directory of main's worktrees, is the one of this workspace.
func (w *Workspace) mutualWorktree(git, main string) error {
	common, err := gitPointer(git, "commondir")
	if err != nil {
		return err
	}
	if filepath.Base(filepath.Dir(git)) != "worktrees" || !leadsTo(common, main) {
		return errors.New("its commondir does not name the repository that it lies in")
	}
	back, err := gitPointer(git, "gitdir")
	if err != nil {
		return err
	}
	if filepath.Base(back) != ".git" || !leadsTo(strings.TrimSuffix(back, ".git"), w.root.path) {
		return errors.New("it is of another worktree: its gitdir does not name this workspace's .git (git worktree repair mends this)")
	}
	return nil
}

// mutualDir makes sure that the git directory names this workspace as its working tree.
func (w *Workspace) mutualDir(git string) error {
	text, err := untrusted.ReadFile(git, "config", gitconfig.MaxSize)
	if err != nil {
		return fmt.Errorf("its config can't be read: %w", withoutPath(err))
	}
	entries, err := gitconfig.Parse(text)
	if err != nil {
		return fmt.Errorf("its config can't be read: %w", err)
	}
	tree := ""
	for _, e := range entries {
		if e.Section == "core" && e.Subsection == "" && e.Key == "worktree" {
			tree = e.Value
		}
	}
	if tree == "" {
		return errors.New("it does not name this workspace (git config core.worktree, set to the workspace's path, does that)")
	}
	if !filepath.IsAbs(tree) {
		tree = git + "/" + tree
	}
	if !leadsTo(tree, w.root.path) {
		return errors.New("its core.worktree names another directory")
	}
	return nil
}

// usableGit judges what git and all that leads to it belongs to, and whether a layer over link.dir can be had.
func (w *Workspace) usableGit(git string, link *gitLink) error {
	for path := git; ; path = filepath.Dir(path) {
		i, err := statAt(unix.AT_FDCWD, path)
		if err != nil {
			return withoutPath(err)
		}
		switch {
		case within(path, link.dir) && i.uid != w.id.uid, i.uid != w.id.uid && i.uid != 0:
			return fmt.Errorf("%s belongs to another user", Quote(path))
		case i.mode&0o002 != 0 && (i.mode&unix.S_ISVTX == 0 || within(path, link.dir)):
			return fmt.Errorf("anyone can write in %s", Quote(path))
		}
		if path == "/" {
			break
		}
	}
	repo, err := openTree(link.dir)
	if err != nil {
		return withoutPath(err)
	}
	defer repo.close()
	for _, name := range []string{"HEAD", "config", "objects", "refs", "reftable"} {
		i, err := repo.stat(name)
		switch {
		case err != nil:
			return withoutPath(err)
		case name == "reftable":
			if i.kind != absent && link.worktree != "" {
				return errors.New("its refs are kept as a reftable, and which of them are other worktrees' can't be told")
			}
		case i.kind != regular && i.kind != directory:
			return fmt.Errorf("it is no git directory: it has no %s", name)
		case i.uid != w.id.uid:
			return fmt.Errorf("%s in it belongs to another user", name)
		}
	}
	if link.worktree != "" {
		for _, name := range []string{"HEAD", "commondir", "gitdir"} {
			if i, err := repo.stat("worktrees/" + link.worktree + "/" + name); err != nil || i.uid != w.id.uid {
				return fmt.Errorf("%s of the worktree belongs to another user", name)
			}
		}
	}
	switch stateDir := filepath.Dir(filepath.Dir(w.state)); {
	case within(w.root.path, link.dir):
		return errors.New("the workspace lies in it")
	case within(link.dir, stateDir) || within(stateDir, link.dir):
		return errors.New("airlock's own state is there")
	}
	if w.gitRule != nil {
		return w.gitRule(link.dir)
	}
	return nil
}

// gitPointer reads a file that holds nothing but a path; one that is relative is so to git.
func gitPointer(git, name string) (string, error) {
	text, err := untrusted.ReadFile(git, name, gitPointerLimit)
	if err != nil {
		return "", fmt.Errorf("its %s can't be read: %w", name, withoutPath(err))
	}
	path := string(bytes.TrimRight(text, "\r\n"))
	if path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("its %s names nothing", name)
	}
	if !filepath.IsAbs(path) {
		path = git + "/" + path
	}
	return path, nil
}

// leadsTo reports whether a path leads to a directory whose real path is given.
func leadsTo(path, real string) bool {
	got, err := filepath.EvalSymlinks(path)
	return err == nil && got == real
}

// within reports whether path is dir or lies in it. Both are absolute and clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// withoutPath takes the operation and the path off an error, for a message that names the path already.
func withoutPath(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
