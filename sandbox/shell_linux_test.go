package sandbox

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// startedAhead is what a shell says that was started ahead, and no other: NULs follow its command.
const startedAhead = StartedAhead + " && echo ahead"

// ShellQuoted is shellQuoted, for tests outside of the package.
func ShellQuoted(text string) string { return shellQuoted(wire(text)) }

// bashSpec is a run of a bash with a command.
func bashSpec(t testing.TB, command string) Spec {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	if bash, _, err = FollowLinks(bash); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, bash, "-c", command)
	spec.Env = append(spec.Env, "LC_ALL=C.UTF-8", "LINES='two\nwords'")
	return spec
}

// NeedsShellAhead skips a test where no shell is started ahead.
func NeedsShellAhead(t *testing.T) {
	t.Helper()
	if !canTrace {
		lacks(t, "a shell ahead", "no system calls are made in a shell's place on this architecture")
	}
}

// doAhead does a run in a sandbox that was begun ahead for runs like another.
func doAhead(t *testing.T, n *Native, like, spec Spec) (exit Exit, out string) {
	t.Helper()
	undisturbed(t, func() {
		waitingSpare(t, n, like)
		exit, out = doRun(t, n, spec, "")
	})
	return exit, out
}

// undisturbed does something again as long as the host's mounts change meanwhile, as tests of other packages change them: what was
// begun ahead is thrown away then.
func undisturbed(t *testing.T, do func()) {
	t.Helper()
	for range 50 {
		mounts, err := watchMounts()
		if err != nil {
			t.Fatal(err)
		}
		do()
		changed := mounts.changed()
		mounts.close()
		if !changed {
			return
		}
	}
}

// What a program in a shell can see is alike, whether the shell was started for it or ahead.
func TestShellAheadIsLikeAnyOther(t *testing.T) {
	NeedsShellAhead(t)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "real/sub dir's"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	// What differs between any two shells, and what is said of a shell that was started ahead.
	differs := regexp.MustCompile(`(?m)^declare -\S+ (BASHPID|EPOCHREALTIME|EPOCHSECONDS|RANDOM|SRANDOM|PPID|BASH_ARGC|PIPESTATUS|SECONDS)\b.*\n`)
	// The number of init's own threads is part of this limit, where no cgroup counts.
	processes, lastDigit := regexp.MustCompile(`(?mi)^max (user )?processes.*`), regexp.MustCompile(`\d\b`)
	commands := []string{
		`declare -p`,
		`echo "$0|$-|$LINENO|$SHLVL|$#|$?|$_|$BASH_SUBSHELL|$PWD|${OLDPWD-none}|$SECONDS"; cd - ; cd /; cd -`,
		`echo "$BASH_EXECUTION_STRING" # 'quoted' "twice" \ $dollar`,
		"echo one\necho $LINENO\nnosuch\ncat <<X\n$LINENO 'x'\nX\n",
		`set -o; shopt; trap; alias; umask; enable; hash; jobs; type cd exec; history`,
		`ulimit -a; ulimit -aH`,
		`env -0 | sort -z | tr '\0' '\n'`,
		`tr -s '\0' '\n' </proc/$$/environ; tr -s '\0' '\n' </proc/$$/cmdline; cat /proc/$$/comm`,
		`cd /proc/$$/fd; for fd in *; do echo "$fd $(readlink $fd | tr -d 0-9)"; done; ls -l /proc/self/fd/0 | cut -c 1-10`,
		`grep -E '^(Name|Umask|PPid|Tracer|Uid|Gid|Groups|Shd|Sig|Cap|NoNew|Seccomp|Cpus_allowed:)' /proc/$$/status`,
		`grep -E '^(PPid|TracerPid|Seccomp|NoNew|Cap)' /proc/self/status`, // executed by the shell in its own place
		`cat /proc/$$/oom_score_adj; nice; cat /proc/$$/cgroup; readlink /proc/$$/{cwd,root,exe}; cat /proc/$$/limits`,
		`cat /proc/$$/mountinfo | sed 's/^[0-9]* [0-9]* [0-9:]* //; s/upperdir=.*//; s/lowerdir=.*//' | sort`,
		`ls / /run /tmp /dev; touch /x; touch /tmp/x && echo written; mv real/x y; mv real moved && ls; ln moved/f g`,
		`exit 7`,
		`kill -TERM $$`,
		`if`,
		`echo "${none?is not set}"`,
		`set -eu; false; echo not reached`,
		`(exec 5>/nope); exec /nope`,
		`trap 'echo bye $?' EXIT; f() { local x=1; return 3; }; f`,
		`f() { echo "${FUNCNAME[*]} ${BASH_LINENO[*]} ${BASH_SOURCE[*]}"; caller; }; f`,
		`. <(echo 'echo $BASH_SOURCE'); bash -c 'echo $SHLVL $((PPID == '$$'))'; $BASH -c 'echo "${BASH_ENV-no}"'`,
		`read -r line; echo "$? $line"; cat; [ -t 0 ] || echo no terminal`,
		`shopt -s extdebug; set -x; : traced; PS4='$(echo deep)'; : twice`,
		`echo é $'\xff' "${#LINES}"; printf '%q\n' "$LINES"; LC_ALL=nowhere; echo`,
		strings.Repeat("#", maxCommand-1000) + "\necho a long one",
		"-x", "+x", "--", "- echo", // more options, to a bash
	}
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		for in, commands := range map[string][]string{"": commands, "link/sub dir's": commands[:3]} {
			for _, command := range commands {
				show := func(started bool) string {
					spec := bashSpec(t, command)
					spec.Network = NetworkNone
					spec.Limits = Limits{Processes: 60, Memory: 1 << 30, Files: 222}
					onOverlay(t, &spec, dir)
					spec.Dir = filepath.Join(spec.Dir, in)
					if n.reserve.drop(); started {
						waitingSpare(t, n, spec)
					}
					exit, out := doRun(t, n, spec, "")
					out = differs.ReplaceAllString(out, "")
					out = processes.ReplaceAllStringFunc(out, func(line string) string { return lastDigit.ReplaceAllString(line, "x") })
					return fmt.Sprintf("%+v\n%s", exit, out)
				}
				var ahead string
				undisturbed(t, func() { ahead = show(true) })
				if diff := cmp.Diff(show(false), ahead); diff != "" {
					t.Errorf("in %q, of %.200q (-started for it +started ahead):\n%s", in, command, diff)
				}
			}
		}
		for _, started := range []bool{true, false} {
			spec := bashSpec(t, startedAhead)
			n.reserve.drop()
			_, out := doRun(t, n, spec, "")
			// Whatever else changes on the host, as by tests of other packages, has a run start its own.
			for try := 0; started && out == "" && try < 5; try++ {
				_, out = doAhead(t, n, spec, spec)
			}
			if (out == "ahead\n") != started {
				t.Errorf("control: a shell that was started ahead (%t) says %q", started, out)
			}
		}
	})
}

// A run that is not the shell that was started ahead does not notice it.
func TestShellAheadThatIsNotTaken(t *testing.T) {
	NeedsShellAhead(t)
	const processes = `; set -- /proc/[0-9]*; echo $#`
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		like := bashSpec(t, "")
		for _, test := range []struct {
			name  string
			alter func(*Spec)
			stdin string
			want  string
		}{
			{"control", func(*Spec) {}, "", "ahead\n"},
			{"another variable", func(s *Spec) { s.Env = append(s.Env, "A=b") }, "", ""},
			{"a variable less", func(s *Spec) { s.Env = s.Env[1:] }, "", ""},
			{"input", func(*Spec) {}, "text", ""},
			{"a longer command", func(s *Spec) { s.Argv[2] += strings.Repeat(" ", maxCommand) }, "", ""},
			{"arguments", func(s *Spec) { s.Argv = append(s.Argv, "name") }, "", ""},
			{"another program", func(s *Spec) { s.Argv = []string{"/bin/sh", "-c", s.Argv[2]} }, "", ""},
		} {
			t.Run(test.name, func(t *testing.T) {
				spec := bashSpec(t, startedAhead+processes)
				test.alter(&spec)
				var exit Exit
				var out string
				undisturbed(t, func() {
					waitingSpare(t, n, like)
					exit, out = doRun(t, n, spec, test.stdin)
				})
				// init and the shell
				if want := test.want + "2\n"; exit != (Exit{}) || out != want {
					t.Errorf("%+v, %q, want %q", exit, out, want)
				}
			})
		}
	})
}

// The thread of init that built the sandbox has no right left soon after the command has begun, whoever executes it, and init is
// not dumpable: what the kernel shows of it in /proc does not belong to the run's user.
func TestBuilderHasNoRights(t *testing.T) {
	const first = `for i in $(seq 100); do
			grep -q '^CapEff:.0*$' /proc/1/status && break
			sleep 0.02
		done
		grep -E '^(Cap|NoNewPrivs)' /proc/1/status
		[ $(id -u) != 0 ] && [ -O /proc/1/environ ] && echo dumpable; true`
	want := "NoNewPrivs:\t1\n"
	for _, set := range []string{"Amb", "Bnd", "Eff", "Prm", "Inh"} {
		want = "Cap" + set + ":\t0000000000000000\n" + want
	}
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		if _, out := doRun(t, n, bashSpec(t, first), ""); out != want {
			t.Errorf("it has\n%s", out)
		}
		if spec := bashSpec(t, first); canTrace {
			if _, out := doAhead(t, n, spec, spec); out != want {
				t.Errorf("with a shell that was started ahead it has\n%s", out)
			}
		}
	})
}

// Without an overlay, too, a shell that was started ahead is under as many filters as another.
func TestShellAheadIsUnderTheFilters(t *testing.T) {
	NeedsShellAhead(t)
	onEach(t, func(t *testing.T, b Backend) {
		n := isolating(b)
		const filters = "grep ^Seccomp /proc/$$/status"
		_, want := doRun(t, n, bashSpec(t, filters), "")
		spec := bashSpec(t, StartedAhead+" && "+filters)
		if _, out := doAhead(t, n, spec, spec); out != want || out == "" {
			t.Errorf("%q, want %q", out, want)
		}
	})
}

func TestShellFor(t *testing.T) {
	for _, test := range []struct {
		argv []string
		env  string
		want bool
	}{
		{[]string{"/bin/bash", "-c", "x"}, "A=b", canTrace},
		{[]string{"/bin/bash", "-c", "x"}, "PATH=/bin", canTrace},
		{[]string{"/bin/bash", "-c"}, "A=b", false},
		{[]string{"/bin/bash", "-l", "x"}, "A=b", false},
		{[]string{"/bin/sh", "-c", "x"}, "A=b", false},
		{[]string{"bash", "-c", "x"}, "A=b", false},
		{[]string{"/bin/bash", "-c", "x"}, "BASH_ENV=/x", false},
		{[]string{"/bin/bash", "-c", "x"}, "BASH_FUNC_cd%%=() { echo; }", false},
		{[]string{"/bin/bash", "-c", "x"}, "LD_PRELOAD=/x", false},
		{[]string{"/bin/bash", "-c", "x"}, "SHELLOPTS=xtrace", false},
		{[]string{"/bin/bash", "-c", "x"}, "POSIXLY_CORRECT=", false},
		{[]string{"/bin/bash", "-c", "x"}, "SECONDS=50", false},
		{[]string{"/bin/bash", "-c", "x"}, "_=x", false},
		{[]string{"/bin/bash", "-c", "x"}, "PWD=/", false},
	} {
		if got := shellFor(Spec{Argv: test.argv, Env: []string{test.env}}) != nil; got != test.want {
			t.Errorf("%q with %s: %t", test.argv, test.env, got)
		}
	}
}

// A shell reads back what is quoted for it, and the longest beginning fits into a pipe.
func TestShellQuoted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, 2000)
	for range 20 {
		for i := range text {
			text[i] = byte(1 + random.IntN(255))
		}
		out, err := exec.Command("bash", "-c", "printf %s "+shellQuoted(wire(text))).Output()
		if err != nil || !bytes.Equal(out, text) {
			t.Fatalf("%v: %q became %q", err, text, out)
		}
	}
	longest := &config{Argv: []wire{"", "", wire(strings.Repeat("'", maxCommand))}}
	if got := len(new(bash).beginning(longest, []int{3, 4, 1 << 20})); got > shellPipeSize {
		t.Errorf("%d bytes", got)
	}
}
