package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A run has no right that it could lose, and knows that it can't get one.
func TestRightsOfTheCommand(t *testing.T) { onEach(t, testRightsOfTheCommand) }

func testRightsOfTheCommand(t *testing.T, n Backend) {
	out := shell(t, n, "cat /proc/self/status")
	for field, want := range map[string]string{
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000",
		"CapBnd": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2",
		"Uid": fmt.Sprintf("%[1]d\t%[1]d\t%[1]d\t%[1]d", os.Geteuid()),
	} {
		if !strings.Contains(out, "\n"+field+":\t"+want+"\n") {
			t.Errorf("%s is not %s in:\n%s", field, want, out)
		}
	}
	if own, err := os.ReadFile("/proc/self/status"); err != nil || strings.Contains(string(own), "NoNewPrivs:\t1") {
		t.Logf("control: this test has no rights to lose either (%v)", err)
	}
	// unshare(1) fails by the filter; by the limit it would fail as well.
	out = shell(t, n, "unshare -U true 2>&1; cat /proc/sys/user/max_user_namespaces; ulimit -c")
	if !strings.Contains(out, "not permitted") || !strings.HasSuffix(out, "\n0\n0\n") {
		t.Errorf("got %q", out)
	}
}

// A chown to someone else fails as it does for every user without privileges, whatever the order of a call's checks;
// the user namespace by itself would say EINVAL.
func TestChown(t *testing.T) { onEach(t, testChown) }

func testChown(t *testing.T, n Backend) {
	out := shell(t, n, `cd /tmp; : > f; ln -s f link
		chown $(id -u):$(id -g) f link . && chown $(id -u) f && chgrp $(id -g) f && chown : f && echo own
		chown 4321 f; chgrp 4321 f; chown -h 4321 link; chown $(id -u):4321 .
		/usr/bin/python3 -c 'import os; os.chown(1, 4321, -1)' || true`, func(s *Spec) { s.Argv[2] = "exec 2>&1; " + s.Argv[2] })
	if !strings.HasPrefix(out, "own\n") || strings.Count(out, "Operation not permitted") != 5 {
		t.Errorf("got %q", out)
	}
}

func TestOnlyThreeDescriptors(t *testing.T) { onEach(t, testOnlyThreeDescriptors) }

func testOnlyThreeDescriptors(t *testing.T, n Backend) {
	// A descriptor that everything started from here inherits.
	leak, err := unix.Open("/", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	_, out := doRun(t, n, testSpec(t, "sh", "-c", "ls /proc/self/fd"), "")
	if out != "0\n1\n2\n3\n" { // 3 is the directory that ls reads
		t.Errorf("ls sees the descriptors %q", out)
	}
}

// connect tries an address from wherever it runs.
func connect(network, address string) string {
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		var errno unix.Errno
		if errors.As(err, &errno) {
			return errno.Error()
		}
		return err.Error()
	}
	c.Close()
	return "connected"
}

func init() {
	roles["echo-on-loopback"] = func(args []string) {
		for _, address := range args {
			l, err := net.Listen("tcp", address)
			if err != nil {
				fmt.Println(err)
				continue
			}
			fmt.Println(connect("tcp", l.Addr().String()))
			l.Close()
		}
		interfaces, err := net.Interfaces()
		fmt.Println(len(interfaces), interfaces[0].Name, err)
	}
}

// Programs of one run reach each other, and there is no other interface than that which they do it by.
func TestLoopback(t *testing.T) { onEach(t, testLoopback) }

func testLoopback(t *testing.T, n Backend) {
	_, out := doRun(t, n, testSpec(t, "/probe", "echo-on-loopback", "127.0.0.1:0", "[::1]:0"), "")
	if out != "connected\nconnected\n1 lo <nil>\n" {
		t.Errorf("inside: %q", out)
	}
}

func TestHostProcessesAreInvisible(t *testing.T) { onEach(t, testHostProcessesAreInvisible) }

func testHostProcessesAreInvisible(t *testing.T, n Backend) {
	t.Setenv("AIRLOCK_TEST_SECRET", "the-server-has-it")
	out := shell(t, n, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; ls -d /proc/[0-9]* | wc -l; true")
	if strings.Contains(out, "the-server-has-it") || strings.Contains(out, "sandbox.test") {
		t.Errorf("the server can be seen in %q", out)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", os.Getpid())); err != nil || len(b) == 0 {
		t.Errorf("control: %q, %v", b, err)
	}
}

// Everyday programs find what they need.
func TestProgramsWork(t *testing.T) { onEach(t, testProgramsWork) }

func testProgramsWork(t *testing.T, n Backend) {
	out := shell(t, n, `id -un; echo ~; getent hosts localhost | head -1; tty 2>&1
python3 -c '
import multiprocessing as m, getpass, os, tempfile, pty
print(m.Pool(2).map(abs, [-1]), getpass.getuser(), os.path.isdir(os.path.expanduser("~")), tempfile.mkstemp()[0] > 0, "é")
pty.spawn(["true"])' || true
echo x | tee /dev/stderr > /dev/null; head -c 4 /dev/urandom | wc -c; exec 3<>/dev/ptmx && echo pty`)
	for _, want := range []string{"/home/run\n", "localhost", "not a tty", "x\n4\n", "pty\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "Traceback") || !strings.Contains(out, "[1] ") {
		t.Errorf("python3:\n%s", out)
	}
}

func TestSignalsAndLimitsReachTheExit(t *testing.T) { onEach(t, testSignalsAndLimitsReachTheExit) }

func testSignalsAndLimitsReachTheExit(t *testing.T, n Backend) {
	spec := testSpec(t, "sh", "-c", "ulimit -n; ulimit -Hn")
	spec.Limits.Files = 100
	if _, out := doRun(t, n, spec, ""); out != "100\n100\n" {
		t.Errorf("open files: %q", out)
	}
	held := n.Held()
	for _, limit := range []string{"processes", "memory", "disk", "files", "cpu"} {
		if _, ok := held[limit]; !ok {
			t.Errorf("Held says nothing of %s", limit)
		}
	}
}

func TestRefusesWhatIsNotHeld(t *testing.T) { onEach(t, testRefusesWhatIsNotHeld) }

func testRefusesWhatIsNotHeld(t *testing.T, n Backend) {
	held := map[string]string{"processes": "rlimit", "memory": ""}
	isolating(n).held = func() map[string]string { return held }
	spec := testSpec(t, "true")
	spec.UID, spec.GID = os.Geteuid(), os.Getegid()
	spec.Limits = Limits{Memory: 1 << 30, Strict: true}
	_, err := n.Start(t.Context(), spec, Stdio{})
	if e := new(SetupError); !errors.As(err, &e) || e.Path != "memory" || e.Hint == "" {
		t.Errorf("strict: %v", err)
	}
	held["processes"] = ""
	if os.Geteuid() == 0 {
		spec.Limits = Limits{Processes: 10}
		_, err = n.Start(t.Context(), spec, Stdio{})
		if e := new(SetupError); !errors.As(err, &e) || e.Path != "processes" {
			t.Errorf("a uid 0 without a limit on processes: %v", err)
		}
	}
}

// A server that is root runs what belongs to a user as that user, with nothing of root's.
func TestAsAnotherUser(t *testing.T) { onEach(t, testAsAnotherUser) }

func testAsAnotherUser(t *testing.T, n Backend) {
	if os.Geteuid() != 0 {
		spec := testSpec(t, "true")
		spec.UID++
		_, err := n.Start(t.Context(), spec, Stdio{})
		if err == nil {
			t.Error("an ordinary user's server took another uid")
		}
		return
	}
	const uid, gid = 54321, 54322
	system, err := HostSystem(os.Environ(), uid, gid)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{
		ID: "other", Argv: []string{"sh", "-c", "id -u; id -G; touch /tmp/x && stat -c %u:%g /tmp/x; id -un; cat /root/x 2>&1; true"}, Env: []string{"PATH=/usr/bin:/bin"},
		Dir: "/", Home: system.Account.Home, UID: uid, GID: gid, Mounts: system.Mounts, Network: NetworkNone,
	}
	_, out := doRun(t, n, spec, "")
	if want := "54321\n54322\n54321:54322\nuser\ncat: /root/x: No such file or directory\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	for _, m := range system.Mounts {
		if m.Kind == MountBind && under(m.Target, "/root") {
			t.Errorf("%s is shown to another user", m.Target)
		}
	}
}
