package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// processesReport is what became of runs in a user namespace without a cgroup.
type processesReport struct {
	Held    string // what Held says of processes
	Made    int    // how many processes a run with a limit of processesLimit had
	Limit   string // what it ended with
	Refused string // what the refusal of the run says; "" if it ran
	Control int    // how many a run without a limit had
	Wrong   string // what else went wrong
}

const processesLimit = 30

// Whether the number of a run's processes can be held without a cgroup is not told by the server's uid: root of a
// container that an ordinary user made is bound by RLIMIT_NPROC, and whoever is root outside of it is not, with
// whatever uid inside.
func TestProcessesInAUserNamespace(t *testing.T) {
	type namespace struct {
		name          string
		inside, outer int // the server's uid in there, and what it is in here
		bound         bool
	}
	cases := []namespace{{"the user's own, as root of it", 0, os.Geteuid(), true}}
	if os.Geteuid() == 0 {
		cases = []namespace{
			{"another user's, as root of it", 0, 54321, true},
			{"another user's, as a user of it", 1234, 54321, true},
			{"root's, as root of it", 0, 0, false},
			{"root's, as a user of it", 1234, 0, false},
		}
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			cmd := child("TestChildProcessesInAUserNamespace", "yes", unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
			attr := cmd.SysProcAttr
			attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: tt.inside, HostID: tt.outer, Size: 1}}
			gid := tt.outer
			if os.Geteuid() != 0 {
				gid = os.Getegid()
			}
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: tt.inside, HostID: gid, Size: 1}}
			attr.Credential = &syscall.Credential{Uid: uint32(tt.inside), Gid: uint32(tt.inside), NoSetGroups: true}
			var got processesReport
			runChild(t, cmd, &got)
			t.Logf("%+v", got)
			if got.Wrong != "" {
				t.Fatal(got.Wrong)
			}
			if !tt.bound {
				if got.Held != "" || !strings.Contains(got.Refused, "hold limit processes") {
					t.Errorf("nothing bounds this user, but it is held by %q, and the run was refused with %q", got.Held, got.Refused)
				}
				return
			}
			if got.Control < 100 {
				t.Errorf("control without a limit: %d processes", got.Control)
			}
			if got.Held != "rlimit" || got.Refused != "" || got.Limit != "processes" {
				t.Errorf("held by %q, refused with %q, ended by %q", got.Held, got.Refused, got.Limit)
			}
			if got.Made < processesLimit-10 || got.Made > processesLimit+initHeadroom {
				t.Errorf("%d processes with a limit of %d", got.Made, processesLimit)
			}
		})
	}
}

func TestChildProcessesInAUserNamespace(t *testing.T) {
	childArgument(t)
	runtime.LockOSThread()
	var report processesReport
	defer func() { reportToParent(t, &report) }()
	// Root's cgroups are root's in here too. A container has none.
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("none", "/sys/fs/cgroup", "tmpfs", 0, ""),
	); err != nil {
		report.Wrong = fmt.Sprint("hide the cgroups: ", err)
		return
	}
	n, err := NewNative()
	if err != nil {
		report.Wrong = err.Error()
		return
	}
	defer n.Close()
	report.Held = n.Held()["processes"]
	made := func(limit int) int {
		spec := testSpec(t, "sh", "-c", manyProcesses+"; sleep 20 & exit 3")
		spec.Mounts = spec.Mounts[:len(spec.Mounts)-1] // the test's binary lies where another user can't go
		spec.Limits.Processes = limit
		out := &strings.Builder{}
		p, err := n.Start(t.Context(), spec, Stdio{Output: out})
		if err != nil {
			report.Refused = err.Error()
			return 0
		}
		exit, err := p.Wait()
		if err != nil {
			report.Wrong = err.Error()
		}
		report.Limit = exit.Limit
		var count int
		if _, err := fmt.Sscan(out.String()[strings.LastIndexByte(strings.TrimSuffix(out.String(), "\n"), '\n')+1:], &count); err != nil {
			return exit.Ended // dash gives up at the first fork that fails
		}
		return count
	}
	if report.Control = made(0); report.Refused == "" && report.Wrong == "" {
		report.Made = made(processesLimit)
	}
}
