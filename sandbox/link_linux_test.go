package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	// link OLD NEW... links, and says whether each new name has the number that the old one had, and how many
	// links both have.
	roles["link"] = func(args []string) {
		for ; len(args) > 1; args = args[2:] {
			var was, old, made unix.Stat_t
			_ = unix.Lstat(args[0], &was)
			if err := unix.Link(args[0], args[1]); err != nil {
				say(args[0], err)
				continue
			}
			fmt.Println(args[0], unix.Lstat(args[0], &old), unix.Lstat(args[1], &made), was.Ino == made.Ino, old.Nlink, made.Nlink)
		}
	}
	// link-open writes in a file by a descriptor from before its link was made.
	roles["link-open"] = func(args []string) {
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
		say("open", err)
		say("link", os.Link(args[0], args[1]))
		_, err = f.WriteString(" late")
		say("write", err)
	}
}

// A file of the lower layer keeps its number under a new name, and a file of the upper layer, of course.
func TestLink(t *testing.T) { onEach(t, testLink) }

func testLink(t *testing.T, n Backend) {
	out := shell(t, n, "/probe link a d/b a d/c d/x y; : > new; /probe link new d/new; cat a d/b d/c; echo; find . -type f | sort",
		on(t, workspace(t, "a", "d/x")))
	expect(t, out, "a <nil> <nil> true 2 2\na <nil> <nil> true 3 3\nd/x <nil> <nil> true 2 2\nnew <nil> <nil> true 2 2\naaa\n"+
		"./a\n./d/b\n./d/c\n./d/new\n./d/x\n./new\n./y\n")
}

func TestLinkOfAnOpenFile(t *testing.T) { onEach(t, testLinkOfAnOpenFile) }

func testLinkOfAnOpenFile(t *testing.T, n Backend) {
	out := shell(t, n, "/probe link-open a b; cat a b", on(t, workspace(t, "a")))
	expect(t, out, "open ok\nlink ok\nwrite ok\na latea late")
}

// Out of a directory in which the user may not write the kernel links too. The number is another then.
func TestLinkOutOfAClosedDirectory(t *testing.T) { onEach(t, testLinkOutOfAClosedDirectory) }

func testLinkOutOfAClosedDirectory(t *testing.T, n Backend) {
	out := shell(t, n, "chmod 555 d; /probe link d/a b d/a b d/b c; ls d; cat b; stat -c %Y d",
		on(t, workspace(t, "d/a")), func(s *Spec) { s.Argv[2] = "touch -d @1 d; " + s.Argv[2] })
	expect(t, out, "d/a <nil> <nil> false 2 2\nd/a EEXIST\nd/b ENOENT\na\nd/a1\n")
}

// What can't be linked gets what the kernel says.
func TestLinkRefused(t *testing.T) { onEach(t, testLinkRefused) }

func testLinkRefused(t *testing.T, n Backend) {
	out := shell(t, n, "/probe link d x a d a/ x missing x a missing/x a /tmp/x '' x; ln -s a s; /probe link s t; readlink t; ls",
		on(t, workspace(t, "a", "d/x")))
	expect(t, out, "d EPERM\na EEXIST\na/ ENOTDIR\nmissing ENOENT\na ENOENT\na EXDEV\n ENOENT\ns <nil> <nil> true 2 2\na\na\nd\ns\nt\n")
}

func TestLinkByGit(t *testing.T) { onEach(t, testLinkByGit) }

func testLinkByGit(t *testing.T, n Backend) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	dir := workspace(t, "repository/a")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "a"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"},
	} {
		cmd := exec.Command("git", append([]string{"-C", dir + "/repository"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	out := shell(t, n, "git clone -q --local repository copy 2>&1; cat copy/a; git -C copy fsck --strict; git -C repository fsck --strict", on(t, dir))
	expect(t, out, "repository/a")
}
