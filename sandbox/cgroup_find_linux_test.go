package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMemberships(t *testing.T) {
	got := parseMemberships("9:name=systemd:/\n4:memory:/a:b/c\n2:cpu,cpuacct:/x\n0::/user.slice/y\n\nbroken\n")
	want := []membership{
		{controllers: []string{"name=systemd"}, path: "/"},
		{controllers: []string{"memory"}, path: "/a:b/c"},
		{controllers: []string{"cpu", "cpuacct"}, path: "/x"},
		{path: "/user.slice/y", unified: true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(membership{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCgroupDirectory(t *testing.T) {
	const hybrid = `25 24 0:22 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro
26 25 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
27 25 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
28 25 0:25 / /sys/fs/cgroup/me\040mory rw - cgroup cgroup rw,memory
`
	const container = `30 29 0:25 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
`
	for _, tt := range []struct {
		name      string
		mountinfo string
		self      string
		want      string // "": not visible
	}{
		{"unified", hybrid, "0::/user.slice/x", "/sys/fs/cgroup/unified/user.slice/x"},
		{"root", hybrid, "0::/", "/sys/fs/cgroup/unified"},
		{"two controllers in one", hybrid, "3:cpu,cpuacct:/a", "/sys/fs/cgroup/cpu,cpuacct/a"},
		{"escaped", hybrid, "3:memory:/a", "/sys/fs/cgroup/me mory/a"},
		{"not mounted", hybrid, "3:pids:/a", ""},
		{"part of the hierarchy is mounted", container, "3:memory:/docker/abc/d", "/sys/fs/cgroup/memory/d"},
		{"another part is mounted", container, "3:memory:/docker/abcd", ""},
		{"outside of the cgroup namespace", hybrid, "0::/../x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := parseMemberships(tt.self)[0].directory(parseCgroupMounts(tt.mountinfo))
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// The files and values, by the kernel's documentation of cgroups.
func TestLimitSettings(t *testing.T) {
	l := Limits{Processes: 100, Memory: 1 << 30, CPU: 1.5}
	for _, tt := range []struct {
		version    int
		controller string
		want       []setting
	}{
		{1, controllerPids, []setting{{"pids.max", "114", false}}},
		{1, controllerMemory, []setting{{"memory.limit_in_bytes", "1073741824", false}, {"memory.memsw.limit_in_bytes", "1073741824", true}}},
		{1, controllerCPU, []setting{{"cpu.cfs_period_us", "100000", false}, {"cpu.cfs_quota_us", "150000", false}, {"cpu.shares", "334", true}}},
		{2, controllerPids, []setting{{"pids.max", "114", false}}},
		{2, controllerMemory, []setting{{"memory.max", "1073741824", false}, {"memory.swap.max", "0", true}, {"memory.oom.group", "1", false}}},
		{2, controllerCPU, []setting{{"cpu.max", "150000 100000", false}, {"cpu.weight", "32", true}}},
	} {
		settings := settingsV1
		if tt.version == 2 {
			settings = settingsV2
		}
		if diff := cmp.Diff(tt.want, settings(tt.controller, l), cmp.AllowUnexported(setting{})); diff != "" {
			t.Errorf("version %d, %s: -want +got:\n%s", tt.version, tt.controller, diff)
		}
		if got := settings(tt.controller, Limits{}); got != nil {
			t.Errorf("version %d, %s, no limit: %v", tt.version, tt.controller, got)
		}
	}
	if q := cpuQuota(0.001); q != minCPUQuota {
		t.Errorf("quota of a thousandth of a core is %d", q)
	}
}

// Where version 2 counts in files of its own, the same events have the same meaning.
func TestReachedReadsTheEvents(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version int
		files   map[string]string
		limit   string
		ended   bool
	}{
		{"nothing", 2, map[string]string{"pids.events": "max 0\n", "memory.events": "low 0\nhigh 0\nmax 9\noom 1\noom_kill 0\noom_group_kill 0\n"}, "", false},
		{"fork refused", 2, map[string]string{"pids.events": "max 3\n", "memory.events": "oom_kill 0\n"}, "processes", false},
		{"killed", 2, map[string]string{"pids.events": "max 3\n", "memory.events": "oom 1\noom_kill 2\n"}, "memory", true},
		{"killed, version 1", 1, map[string]string{"pids.events": "max 0\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"}, "memory", true},
		{"version 1 has no memory.events", 1, map[string]string{"memory.events": "oom_kill 1\n"}, "", false},
		{"no files", 2, nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c := &cgroup{dirs: []cgroupDir{{dir, tt.version, []string{controllerPids, controllerMemory}}}}
			if limit, ended := c.reached(); limit != tt.limit || ended != tt.ended {
				t.Errorf("got %q, %v, want %q, %v", limit, ended, tt.limit, tt.ended)
			}
		})
	}
}
