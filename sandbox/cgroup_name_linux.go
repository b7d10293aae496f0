package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Cgroups are named after the server that made them:
//
//	airlock-PID-START-PIDNS-RANDOM-RUN
//
// START is when the server started, in clock ticks since boot, so that a reused PID is not taken for the
// server (cgroups don't outlive a boot), and PIDNS is the inode of its PID namespace, without which PID
// says nothing.
const cgroupPrefix = "airlock-"

// leafSuffix marks the cgroup that a server itself moved into, in place of RANDOM-RUN.
const leafSuffix = "server"

// maxRunInName keeps a name below NAME_MAX, whatever the run is called.
const maxRunInName = 64

// stamp says which process a server is, for as long as the machine is up.
type stamp struct {
	namespace uint64
	pid       int
	start     uint64
}

// selfStamp is the stamp of this process.
func selfStamp() (stamp, error) {
	ns, err := pidNamespace()
	if err != nil {
		return stamp{}, err
	}
	st, err := readStat(os.Getpid())
	if err != nil {
		return stamp{}, err
	}
	return stamp{ns, os.Getpid(), st.start}, nil
}

func pidNamespace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err}
	}
	return st.Ino, nil
}

// prefix is what the names of all cgroups of the server begin with.
func (s stamp) prefix() string {
	return fmt.Sprintf("%s%d-%d-%d-", cgroupPrefix, s.pid, s.start, s.namespace)
}

func (s stamp) leafName() string { return s.prefix() + leafSuffix }

// cgroupName is a new name for the cgroup of a run.
func (s stamp) cgroupName(run string) string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return s.prefix() + hex.EncodeToString(b[:]) + "-" + run[:min(len(run), maxRunInName)]
}

func isServerLeaf(name string) bool {
	s, ok := parseStamp(name)
	return ok && name == s.leafName()
}

// parseStamp reads the stamp in the name of a cgroup; false if no server made that.
func parseStamp(name string) (stamp, bool) {
	rest, ok := strings.CutPrefix(name, cgroupPrefix)
	f := strings.SplitN(rest, "-", 4)
	if !ok || len(f) != 4 {
		return stamp{}, false
	}
	pid, err1 := strconv.ParseInt(f[0], 10, 32)
	start, err2 := strconv.ParseUint(f[1], 10, 64)
	ns, err3 := strconv.ParseUint(f[2], 10, 64)
	s := stamp{ns, int(pid), start}
	if err1 != nil || err2 != nil || err3 != nil || pid <= 0 || !strings.HasPrefix(name, s.prefix()) {
		return stamp{}, false
	}
	return s, true
}

// dead is true only if the process is certainly no more: of another PID namespace nothing can be said,
// and what may not be looked at counts as alive.
func (s stamp) dead(namespace uint64) bool {
	if s.namespace != namespace {
		return false
	}
	if err := unix.Kill(s.pid, 0); err != nil {
		return err == unix.ESRCH
	}
	st, err := readStat(s.pid)
	return err == nil && (st.start != s.start || st.state == 'Z' || st.state == 'X')
}
