package overlay

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const ownMounts = "AIRLOCK_OVERLAY_TEST_MOUNTS"

// inOwnMounts runs the test once more, in user and mount namespaces of its own where it may mount as the user
// that it is. It is true in there, and outside all is done when it returns.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownMounts) != "" {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}, // overlayfs makes work with mode 000
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	switch {
	case is(err, unix.EPERM, unix.ENOSPC):
		missing(t, "userns", err)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Fatalf("in its own mounts: %v\n%s", err, out)
	}
	return false
}

// mountOn mounts for as long as the test goes on.
func mountOn(t *testing.T, fstype, source, target string, flags uintptr, data string) {
	t.Helper()
	if err := os.MkdirAll(target, 0o755); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		t.Fatalf("mount %s at %s: %v", fstype, target, err)
	}
	t.Cleanup(func() { unix.Unmount(target, unix.MNT_DETACH) })
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestMountsInside: what is mounted in a workspace is seen in its place by a run, which can write there;
// nothing of that lands, and all of it is named. The rest lands as ever.
func TestMountsInside(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	f := onDisk(t, `mkdir -p a/b rootfs/proc; echo 1 > f; ln f f2; echo 1 > gone; mkdir -p old/deep; echo 1 > old/deep/x; echo 1 > a/plain
		mkdir mode; chmod 700 mode; echo below > a/b/covered; echo file > bound; mkfifo fifo; head -c 3000000 /dev/zero > zeros`)
	data := filepath.Join(f.dir, "my data")
	mountOn(t, "tmpfs", "none", data, 0, "mode=755")
	write(t, data+"/x", "in data\n")
	mountOn(t, "tmpfs", "none", data+"/nested", 0, "mode=755")
	write(t, data+"/nested/n", "in nested\n")
	other := filepath.Join(f.base, "other")
	if err := os.MkdirAll(other+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, other+"/sub/o", "in other\n")
	write(t, other+"/file", "real\n")
	mountOn(t, "", other, f.dir+"/a/b", unix.MS_BIND, "")
	if err := unix.Mount(other+"/file", f.dir+"/bound", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(f.dir+"/bound", unix.MNT_DETACH)
	// What holds all of airlock's own, and a mount that another one covers.
	mountOn(t, "", f.base, f.dir+"/everything", unix.MS_BIND, "")
	mountOn(t, "tmpfs", "none", f.dir+"/twice/below", 0, "")
	mountOn(t, "tmpfs", "none", f.dir+"/twice", 0, "mode=755")
	write(t, f.dir+"/twice/top", "top\n")

	report := f.landed(`
		test "$(cat "my data/x")" = "in data"; test "$(cat "my data/nested/n")" = "in nested"
		test "$(cat a/b/sub/o)" = "in other"; test "$(cat bound)" = real; test "$(cat twice/top)" = top
		test ! -e a/b/covered; test ! -e everything/state; if echo x > bound; then exit 8; fi
		echo y > "my data/x"; echo y > "my data/nested/y"; rm -r a/b/sub; mkdir a/b/new
		echo 2 >> f; rm gone; mv old new; chmod 750 mode; mkdir -p q/r; echo 1 > q/r/s; echo 2 > a/plain; : > zeros
		rm -r a/b 2> /dev/null || true; rmdir "my data" 2> /dev/null && exit 9 || true`, "")
	want := "workspace: 2 added, 5 modified, 2 deleted: new/deep/x, q/r/s, a/plain, f, f2, mode, zeros, gone, old/deep/x"
	if got := report.Summary(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var lost []string
	for _, w := range report.Withheld {
		lost = append(lost, w.Path+" "+w.Why)
	}
	const on = " on another filesystem, mounted at "
	if want := []string{
		"a/b/file" + on + "a/b", "a/b/sub" + on + "a/b",
		"my data/nested/y" + on + "my data/nested", "my data/x" + on + "my data",
	}; !reflect.DeepEqual(lost, want) {
		t.Errorf("withheld %q\nwant     %q", lost, want)
	}
	if all, err := f.History(context.Background()); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0].Report.Withheld, report.Withheld) {
		t.Errorf("the history has %+v, %v", all, err)
	}
	notes := strings.Join(report.Notes, "\n")
	for _, want := range []string{"everything was not shown to the run: airlock's own state is in it", "private copy", "bound", "Not in the copy: fifo"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note says %q:\n%s", want, notes)
		}
	}
	f.host(`test "$(cat "my data/x")" = "in data"; test "$(cat a/b/sub/o)" = "in other"; test ! -e "my data/nested/y"
		test "$(cat bound)" = real; printf '1\n2\n' | cmp - f; cmp f f2; test f -ef f2; test -p fifo; test ! -e old; test ! -s zeros`)

	// So it is where nothing else was changed.
	report = f.landed(`echo z > "my data/x"`, "")
	if got := report.Withheld; report.Summary() != "workspace: no changes" || len(got) != 1 || got[0].Path != "my data/x" {
		t.Errorf("only in a mount: %s, withheld %v", report.Summary(), got)
	}

	// They go, and the workspace is an overlay's lower layer again.
	for _, dir := range []string{"my data/nested", "my data", "a/b", "bound", "everything", "twice"} {
		if err := unix.Unmount(filepath.Join(f.dir, dir), unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	unix.Unmount(f.dir+"/twice/below", unix.MNT_DETACH)
	report = f.landed("cat a/b/covered; echo 3 > f", "")
	if got := report.Summary(); got != "workspace: 1 modified: f" || len(report.Notes) > 0 {
		t.Errorf("without mounts: %s, %q", got, report.Notes)
	}
}

// TestKernelMounts: a run does not see the host's kernel through a chroot that lies in the workspace.
func TestKernelMounts(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	f := onDisk(t, "mkdir -p rootfs/dev; echo 1 > f")
	mountOn(t, "", "/dev", f.dir+"/rootfs/dev", unix.MS_BIND|unix.MS_REC, "")
	if _, err := os.Stat(f.dir + "/rootfs/dev/null"); err != nil {
		t.Fatal("nothing is mounted: ", err)
	}
	report := f.landed("test -z \"$(ls rootfs/dev)\"; echo 2 > f", "")
	if got := report.Summary(); got != "workspace: 1 modified: f" {
		t.Error(got)
	}
	if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "rootfs/dev was not shown to the run: it is the host kernel's own (devtmpfs)") {
		t.Error(notes)
	}
}

// TestMountSockets: a socket and a FIFO on what can't be an overlay are out of reach, as those below one.
func TestMountSockets(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	f := onDisk(t, "echo 1 > f")
	mountOn(t, "tmpfs", "none", f.dir+"/m", 0, "mode=755")
	mountOn(t, "tmpfs", "none", f.dir+"/m/n", 0, "mode=755")
	if err := unix.Mkfifo(f.dir+"/m/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	f.landed("test ! -e m/fifo; test -d m/n", "")
}

// copying lets the next transactions work on copies.
func (f *fixture) copying() {
	for f.Refuse(f.dir) {
	}
}

// TestCopyConflicts: a private copy judges by the same rules as an overlay.
func TestCopyConflicts(t *testing.T) {
	script := `echo run > edited; echo run > same; echo run > typed; rm deleted; rm -r dir; mkdir dir; echo run > dir/new
		echo run > quiet; mv moved to; rm -r kind; echo run > kind; ln -sf there link; chmod 600 mode; : > empty; rm -r tree`
	meanwhile := `echo host > edited; echo run > same; rm typed; mkdir typed; echo host > deleted; echo host > dir/host; echo host > added; echo host > tree/deep/y`
	setup := `for f in edited same typed deleted quiet moved mode; do echo 1 > $f; done; mkdir -p dir kind tree/deep; echo 1 > dir/old; echo 1 > kind/x; ln -s here link; echo 1 > tree/deep/x`
	plain := onDisk(t, setup).landed(script, meanwhile)
	f := onDisk(t, setup)
	f.copying()
	copied := f.landed(script, meanwhile)
	if len(plain.Conflicts) < 4 || len(copied.Notes) != 1 {
		t.Fatalf("a test of nothing: %+v\n%+v", plain, copied)
	}
	copied.Notes = plain.Notes
	if !reflect.DeepEqual(plain, copied) {
		t.Errorf("overlay: %+v\ncopy:    %+v", plain, copied)
	}
}

// TestCopyTooLarge: a copy that does not fit is refused with cause and mend, and leaves nothing.
func TestCopyTooLarge(t *testing.T) {
	f := onDisk(t, "head -c 2000000 /dev/urandom > big; truncate -s 1T sparse")
	f.copying()
	f.LimitCopies(1 << 20)
	_, err := f.Begin(context.Background(), "r1")
	if err == nil || !strings.Contains(err.Error(), "limits.disk") || !strings.Contains(err.Error(), "hint: ") {
		t.Errorf("got %v", err)
	}
	if left := f.leftovers(); left != "" {
		t.Errorf("left: %s", left)
	}
	f.LimitCopies(4 << 20)
	if got := f.landed("test $(stat -c %s sparse) = 1099511627776; echo 1 > f", "").Summary(); got != "workspace: 1 added: f" {
		t.Error(got)
	}
}

// TestCopyUnread: what can't be copied is not there in the run, and is neither overwritten nor removed by it.
func TestCopyUnread(t *testing.T) {
	f := onDisk(t, "echo secret > f; mkdir d; echo secret > d/x; mkfifo fifo; echo 1 > g")
	if os.Geteuid() != 0 {
		f.host("chmod 000 f d")
	}
	f.copying()
	report := f.landed("test ! -e fifo; echo run > fifo; test -f f || echo run > f; chmod 700 d; rm -r d; echo 2 > g", "")
	f.host("test -p fifo; grep -qx 2 g; chmod 700 f")
	want := []Withheld{{"fifo", "could not be copied for the run"}}
	if os.Geteuid() != 0 {
		want = []Withheld{{"d", want[0].Why}, {"f", want[0].Why}, want[0]}
		f.host("chmod 700 d; grep -qx secret f; grep -qx secret d/x")
	}
	if !reflect.DeepEqual(report.Withheld, want) {
		t.Errorf("withheld %+v, want %+v", report.Withheld, want)
	}
}

// What the table says is what is mounted now, whenever it was asked before.
func TestMountTable(t *testing.T) {
	if !inOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	var table mountTable
	expect := func(when string, want ...string) {
		t.Helper()
		for range 2 { // parsed, and remembered
			places, err := table.in(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range places {
				got = append(got, m.path)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
	}
	expect("at first")
	mountOn(t, "tmpfs", "none", dir+"/a", 0, "")
	expect("mounted", "a")
	mountOn(t, "tmpfs", "none", dir+"/b", 0, "")
	if err := unix.Unmount(dir+"/a", 0); err != nil {
		t.Fatal(err)
	}
	expect("another, and not the first", "b")
	mountOn(t, "tmpfs", "none", t.TempDir()+"/elsewhere", 0, "")
	expect("something elsewhere", "b")
	if err := unix.Unmount(dir+"/b", 0); err != nil {
		t.Fatal(err)
	}
	expect("none again")
	mountOn(t, "tmpfs", "none", dir+"/sub/c", 0, "")
	expect("in a directory", "sub/c")
	if err := os.Rename(dir+"/sub", dir+"/moved"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(dir+"/moved/c", unix.MNT_DETACH) }() // mountOn's own has the old path
	expect("whose directory was renamed, of which the kernel tells nobody", "moved/c")
}

func TestParseMounts(t *testing.T) {
	text := `21 26 0:20 / /proc rw,relatime - proc proc rw
31 26 254:0 /a\040b /ws/d\011a\134\012t\303\244 rw master:1 propagate_from:2 - ext4 /dev/vda rw
32 26 0:1 / /ws rw - tmpfs none rw
33 26 0:1 / /wsx/y rw - tmpfs none rw
broken line
34 26 0:1 / /ws/z rw - tmpfs
`
	want := []mount{
		{id: 31, path: "d\ta\\\nt\xc3\xa4", fstype: "ext4"},
		{id: 34, path: "z", fstype: "tmpfs"},
	}
	if got := parseMounts([]byte(text), "/ws"); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
