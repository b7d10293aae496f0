package sandbox

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// routes is what the kernel counts of a run's way out. A network namespace in which there is only a loopback has no route to
// anywhere else, and whoever wants to go there, by whatever protocol, is told that the network is unreachable and counted
// (OutNoRoutes of RFC 4293 and RFC 1213). Names of hosts belong to it: their server is such an address.
type routes struct {
	v4, v6 int // the counters, opened ahead; -1 where the kernel has none
}

// The counters of the network namespace that whoever opens them is in.
const (
	counters  = "/proc/self/net/snmp"
	counters6 = "/proc/self/net/snmp6"
	// countersRoom is how much of them is read, in bytes: what is asked for is in the first lines.
	countersRoom = 2 << 10
)

// noRoutes are those of a run about which it is not asked, since all its connections arrive somewhere.
var noRoutes = routes{v4: -1, v6: -1}

// openRoutes opens the counters of the namespace that init is in.
func openRoutes() routes {
	open := func(name string) int {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1
		}
		return fd
	}
	return routes{v4: open(counters), v6: open(counters6)}
}

// missed reports whether somebody in the namespace wanted to go where no route leads. Where the kernel doesn't say, nobody did.
func (r routes) missed() bool {
	text := make([]byte, countersRoom)
	read := func(fd int) []byte {
		n, err := unix.Pread(fd, text, 0)
		if err != nil {
			return nil
		}
		return text[:n]
	}
	return outNoRoutes(read(r.v4)) > 0 || outNoRoutes6(read(r.v6)) > 0
}

// outNoRoutes finds the counter in what /proc/net/snmp begins with, which is a line of names and one of numbers.
func outNoRoutes(text []byte) uint64 {
	names, rest, _ := bytes.Cut(text, []byte("\n"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	numbers := bytes.Fields(line)
	for i, name := range bytes.Fields(names) {
		if string(name) == "OutNoRoutes" && i < len(numbers) {
			n, _ := strconv.ParseUint(string(numbers[i]), 10, 64)
			return n
		}
	}
	return 0
}

// outNoRoutes6 finds it in /proc/net/snmp6, which has a line for each name and its number.
func outNoRoutes6(text []byte) uint64 {
	for line := range bytes.Lines(text) {
		if pair := bytes.Fields(line); len(pair) == 2 && string(pair[0]) == "Ip6OutNoRoutes" {
			n, _ := strconv.ParseUint(string(pair[1]), 10, 64)
			return n
		}
	}
	return 0
}
