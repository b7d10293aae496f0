package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// procStat is what is used of /proc/PID/stat.
type procStat struct {
	state  byte
	parent int
	start  uint64 // clock ticks since boot
}

// statFields gives the fields of /proc/PID/stat from the third on, at least 20.
func statFields(pid int) (fields []string, path string, err error) {
	path = fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, path, err
	}
	// The second field is the program's name in parentheses, and may hold any byte, these included.
	_, after, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	f := strings.Fields(after)
	if len(f) < 20 || len(f[0]) != 1 {
		return nil, path, fmt.Errorf("%s has an unknown form", path)
	}
	return f, path, nil
}

// readStat reads /proc/PID/stat.
func readStat(pid int) (procStat, error) {
	f, path, err := statFields(pid)
	if err != nil {
		return procStat{}, err
	}
	parent, err := strconv.Atoi(f[1])
	if err != nil {
		return procStat{}, fmt.Errorf("%s has an unknown form: %w", path, err)
	}
	start, err := strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("%s has an unknown form: %w", path, err)
	}
	return procStat{f[0][0], parent, start}, nil
}
