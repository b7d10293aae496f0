package sandbox

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// coreLimit, in bytes, has no core dumped at all, neither to a file, which would be larger, nor to a program of the host's
// that core_pattern names. The kernel starts such a program, as root and outside of every namespace, whatever the limit is,
// 0 included, but for this one value, by which it keeps the program from being started for its own crash (core(5)).
const coreLimit = 1

// checkCoreDumps looks for a receiver of core dumps that the limit does not keep away. ok is false where there is nothing
// to say: where cores are files.
func checkCoreDumps(h host) (c Check, ok bool) {
	pattern := h.sysctl("kernel/core_pattern")
	c = Check{Name: "core dumps", Promise: "what crashes in a run is no matter of the host's"}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		c.Detail = fmt.Sprintf("the limit on core files can't be read: %v", err)
		return c, true
	}
	switch {
	case strings.HasPrefix(pattern, "@"):
		c.Detail = "kernel.core_pattern names a socket, which gets the memory of whatever crashes in a run, whatever its limits are"
		c.Mend = "let kernel.core_pattern name a program (|/usr/lib/systemd/systemd-coredump …) or a file"
	case strings.HasPrefix(pattern, "|") && limit.Max < coreLimit:
		c.Detail = "this process's hard limit on core files is 0, and the kernel then starts the program in kernel.core_pattern for whatever crashes in a run"
		c.Mend = "start airlock with a hard limit on core files above 0 (in a systemd unit: LimitCORE=0:1)"
	case strings.HasPrefix(pattern, "|"):
		c.OK, c.Detail = true, "not taken of runs: their limit is the one for which the kernel starts no program"
	default:
		return c, false
	}
	return c, true
}
