package sandbox

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// call is what the kernel shows a filter of a system call.
type call struct {
	nr   uint32
	arch uint32
	args [6]uint64
}

// bytes lays the call out as struct seccomp_data on a little-endian machine.
func (c call) bytes() []byte {
	b := binary.LittleEndian.AppendUint32(nil, c.nr)
	b = binary.LittleEndian.AppendUint32(b, c.arch)
	b = binary.LittleEndian.AppendUint64(b, 0xdead) // instruction pointer
	for _, a := range c.args {
		b = binary.LittleEndian.AppendUint64(b, a)
	}
	return b
}

// interpret runs a filter as the kernel would, for the instructions that assemble uses. A program that
// the kernel would not load is an error.
func interpret(program []unix.SockFilter, c call) (uint32, error) {
	data := c.bytes()
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		taken := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			if in.K%4 != 0 || int(in.K)+4 > len(data) {
				return 0, fmt.Errorf("%d: load from %d", pc, in.K)
			}
			acc = binary.LittleEndian.Uint32(data[in.K:])
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K, nil
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			taken = acc == in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			taken = acc&in.K != 0
		default:
			return 0, fmt.Errorf("%d: unknown instruction %#x", pc, in.Code)
		}
		if taken {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	return 0, fmt.Errorf("the program ran over its end")
}

func verdictName(v uint32) string {
	switch v & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return "allow"
	case unix.SECCOMP_RET_KILL_PROCESS:
		return "kill"
	case unix.SECCOMP_RET_USER_NOTIF:
		return "notify"
	case unix.SECCOMP_RET_ERRNO:
		if v&unix.SECCOMP_RET_DATA == 0 {
			return "pretend"
		}
		return unix.ErrnoName(unix.Errno(v & unix.SECCOMP_RET_DATA))
	}
	return fmt.Sprintf("%#x", v)
}

var archs = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// numbersAllowed are calls that no rule names, for the table below.
var numbersAllowed = []rule{
	{name: "read", amd64: 0, arm64: 63},
	{name: "execve", amd64: 59, arm64: 221},
	{name: "ptrace", amd64: 101, arm64: 117},
	{name: "seccomp", amd64: 317, arm64: 277},
	{name: "process_vm_readv", amd64: 310, arm64: 270},
	{name: "statx", amd64: 332, arm64: 291},
	{name: "rseq", amd64: 334, arm64: 293},
	{name: "fork", amd64: 57, arm64: absent},
}

func numberOf(t *testing.T, name string, arch uint32) int {
	t.Helper()
	for _, rules := range [][]rule{refused, numbersAllowed} {
		for _, r := range rules {
			if r.name == name {
				return r.number(arch)
			}
		}
	}
	t.Fatalf("no number is known for %s", name)
	return absent
}

func TestFilterVerdicts(t *testing.T) {
	const high = 1 << 32 // what the kernel doesn't look at
	const sigchld = uint64(unix.SIGCHLD)
	tests := []struct {
		name string
		args [6]uint64
		want string
	}{
		{"read", [6]uint64{}, "allow"},
		{"execve", [6]uint64{}, "allow"},
		{"fork", [6]uint64{}, "allow"},
		{"ptrace", [6]uint64{}, "allow"},
		{"seccomp", [6]uint64{}, "allow"},
		{"process_vm_readv", [6]uint64{}, "allow"},
		{"statx", [6]uint64{}, "allow"},
		{"rseq", [6]uint64{}, "allow"},

		{"io_uring_setup", [6]uint64{8}, "ENOSYS"},
		{"io_uring_enter", [6]uint64{}, "ENOSYS"},
		{"keyctl", [6]uint64{}, "ENOSYS"},
		{"bpf", [6]uint64{}, "EPERM"},
		{"userfaultfd", [6]uint64{}, "EPERM"},
		{"perf_event_open", [6]uint64{}, "EPERM"},

		{"clone", [6]uint64{sigchld}, "allow"},
		{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_VFORK | sigchld}, "allow"},
		{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD}, "allow"},
		{"clone", [6]uint64{unix.CLONE_NEWUSER | sigchld}, "EPERM"},
		{"clone", [6]uint64{unix.CLONE_NEWNET | sigchld}, "EPERM"},
		{"clone", [6]uint64{unix.CLONE_NEWNS | sigchld | high}, "EPERM"},
		{"clone", [6]uint64{unix.CLONE_NEWCGROUP}, "EPERM"},
		{"clone3", [6]uint64{}, "ENOSYS"},
		{"unshare", [6]uint64{unix.CLONE_FILES}, "allow"},
		{"unshare", [6]uint64{unix.CLONE_FS | unix.CLONE_SYSVSEM}, "allow"},
		{"unshare", [6]uint64{unix.CLONE_NEWUSER}, "EPERM"},
		{"unshare", [6]uint64{unix.CLONE_NEWTIME | high}, "EPERM"},
		{"setns", [6]uint64{}, "EPERM"},

		{"mount", [6]uint64{}, "EPERM"},
		{"umount2", [6]uint64{}, "EPERM"},
		{"chroot", [6]uint64{}, "EPERM"},
		{"fsopen", [6]uint64{}, "EPERM"},
		{"open_tree_attr", [6]uint64{}, "EPERM"},
		{"open_by_handle_at", [6]uint64{}, "EPERM"},

		{"mknod", [6]uint64{0, unix.S_IFREG | 0o644}, "allow"},
		{"mknod", [6]uint64{0, unix.S_IFIFO | 0o644}, "allow"},
		{"mknod", [6]uint64{0, 0o644}, "allow"}, // 0 is a regular file
		{"mknod", [6]uint64{0, unix.S_IFCHR}, "EPERM"},
		{"mknod", [6]uint64{0, unix.S_IFBLK | 0o600 | high}, "EPERM"},
		{"mknodat", [6]uint64{0, 0, unix.S_IFSOCK | 0o600}, "allow"},
		{"mknodat", [6]uint64{0, 0, unix.S_IFCHR}, "EPERM"},
		{"mknodat", [6]uint64{0, 0, unix.S_IFCHR | 1<<16}, "EPERM"}, // mode has 16 bits
		{"mknodat", [6]uint64{0, 0, unix.S_IFBLK | 0o777}, "EPERM"},

		{"personality", [6]uint64{0}, "allow"},
		{"personality", [6]uint64{0xffffffff}, "allow"},
		{"personality", [6]uint64{perNoRandomize}, "allow"},
		{"personality", [6]uint64{perLinux32 | perNoRandomize}, "allow"},
		{"personality", [6]uint64{0x0400000}, "EPERM"}, // READ_IMPLIES_EXEC
		{"personality", [6]uint64{perNoRandomize | 0x0100000}, "EPERM"},

		{"socket", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, "allow"},
		{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, "allow"},
		{"socket", [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, "allow"},
		{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, "allow"},
		{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, "EPROTONOSUPPORT"},
		{"socket", [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE | high}, "EPROTONOSUPPORT"},
		{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, "allow"},
		{"socket", [6]uint64{unix.AF_NETLINK | high, unix.SOCK_RAW, unix.NETLINK_ROUTE}, "allow"},
		{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, "EPROTONOSUPPORT"},
		{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, "EPROTONOSUPPORT"},
		{"socket", [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, "EAFNOSUPPORT"},
		{"socket", [6]uint64{unix.AF_VSOCK | high, unix.SOCK_STREAM}, "EAFNOSUPPORT"},
		{"socket", [6]uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, "EAFNOSUPPORT"},
		{"socket", [6]uint64{unix.AF_PACKET, unix.SOCK_RAW}, "EAFNOSUPPORT"},
		{"socket", [6]uint64{unix.AF_BLUETOOTH, unix.SOCK_RAW}, "EAFNOSUPPORT"},
		{"socketpair", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, "allow"},
		{"socketpair", [6]uint64{unix.AF_TIPC, unix.SOCK_STREAM}, "EAFNOSUPPORT"},

		{"ioctl", [6]uint64{0, unix.TCGETS}, "allow"},
		{"ioctl", [6]uint64{0, unix.TIOCSTI}, "EPERM"},
		{"ioctl", [6]uint64{0, unix.TIOCSTI | high}, "EPERM"},
		{"ioctl", [6]uint64{0, unix.TIOCLINUX | high}, "EPERM"},
		{"ioctl", [6]uint64{unix.TIOCSTI, unix.TCGETS}, "allow"},

		{"setrlimit", [6]uint64{unix.RLIMIT_CORE, 1}, "pretend"},
		{"setrlimit", [6]uint64{unix.RLIMIT_CORE | high, 1}, "pretend"},
		{"setrlimit", [6]uint64{unix.RLIMIT_NOFILE, 1}, "allow"},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, 0, 1}, "allow"},
		{"prlimit64", [6]uint64{7, unix.RLIMIT_CORE, 1}, "pretend"},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, high}, "pretend"}, // a pointer whose low half is 0
		{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, 1, 1}, "EPERM"},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, high, 1}, "EPERM"},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, 1, high}, "EPERM"},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_CORE, high, high}, "EPERM"},
		{"prlimit64", [6]uint64{0, unix.RLIMIT_NOFILE, 1, 1}, "allow"},
		{"prlimit64", [6]uint64{1, unix.RLIMIT_NOFILE, 0, 1}, "allow"},
		{"prlimit64", [6]uint64{1, unix.RLIMIT_NOFILE, 1}, "EPERM"},
		{"prlimit64", [6]uint64{7, unix.RLIMIT_NOFILE, high, 1}, "EPERM"},
	}
	for archName, arch := range archs {
		program, err := assemble(arch, refused)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d instructions", archName, len(program))
		for _, tt := range tests {
			nr := numberOf(t, tt.name, arch)
			if nr == absent {
				continue
			}
			got, err := interpret(program, call{uint32(nr), arch, tt.args})
			if err != nil {
				t.Fatalf("%s: %v", archName, err)
			}
			if verdictName(got) != tt.want {
				t.Errorf("%s: %s%#x is %s, want %s", archName, tt.name, tt.args, verdictName(got), tt.want)
			}
		}
	}
}

// Every rule without conditions must refuse its call with its errno, and no other number may be hit: the
// two ways in which a jump can be off by one.
func TestFilterRefusesExactlyItsRules(t *testing.T) {
	for archName, arch := range archs {
		program, err := assemble(arch, refused)
		if err != nil {
			t.Fatal(err)
		}
		listed := make(map[uint32]rule)
		for _, r := range refused {
			if nr := r.number(arch); nr != absent {
				listed[uint32(nr)] = r
			}
		}
		for nr := range uint32(600) {
			got, err := interpret(program, call{nr: nr, arch: arch})
			if err != nil {
				t.Fatalf("%s: %v", archName, err)
			}
			r, ok := listed[nr]
			switch {
			case !ok && got != unix.SECCOMP_RET_ALLOW:
				t.Errorf("%s: call %d, which no rule names, is %s", archName, nr, verdictName(got))
			case ok && len(r.when) == 0 && got != refuse(r.errno):
				t.Errorf("%s: %s is %s, want %s", archName, r.name, verdictName(got), unix.ErrnoName(r.errno))
			}
		}
	}
}

func TestFilterForeignCalls(t *testing.T) {
	amd64, err := assemble(unix.AUDIT_ARCH_X86_64, refused)
	if err != nil {
		t.Fatal(err)
	}
	arm64, err := assemble(unix.AUDIT_ARCH_AARCH64, refused)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		program []unix.SockFilter
		call    call
		want    string
	}{
		{"i386 on amd64", amd64, call{nr: 1, arch: unix.AUDIT_ARCH_I386}, "kill"},
		{"arm on arm64", arm64, call{nr: 1, arch: unix.AUDIT_ARCH_ARM}, "kill"},
		{"amd64 on arm64", arm64, call{nr: 63, arch: unix.AUDIT_ARCH_X86_64}, "kill"},
		{"x32 read", amd64, call{nr: x32Bit, arch: unix.AUDIT_ARCH_X86_64}, "ENOSYS"},
		{"x32 mount", amd64, call{nr: x32Bit | 165, arch: unix.AUDIT_ARCH_X86_64}, "ENOSYS"},
		{"skipped by a tracer", amd64, call{nr: numberSkipped, arch: unix.AUDIT_ARCH_X86_64}, "allow"},
		{"skipped by a tracer", arm64, call{nr: numberSkipped, arch: unix.AUDIT_ARCH_AARCH64}, "allow"},
	}
	for _, tt := range tests {
		got, err := interpret(tt.program, tt.call)
		if err != nil {
			t.Fatal(err)
		}
		if verdictName(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, verdictName(got), tt.want)
		}
	}
}

// With a listener, the rename calls go to it in every form, and nothing else changes.
func TestFilterNotifies(t *testing.T) {
	for archName, arch := range archs {
		plain, err := assemble(arch, refused)
		if err != nil {
			t.Fatal(err)
		}
		program, err := assemble(arch, append(notified[:len(notified):len(notified)], refused...))
		if err != nil {
			t.Fatal(err)
		}
		listed := make(map[uint32]bool)
		for _, r := range notified {
			if nr := r.number(arch); nr != absent {
				listed[uint32(nr)] = true
			}
		}
		for nr := range uint32(600) {
			got, err := interpret(program, call{nr: nr, arch: arch})
			if err != nil {
				t.Fatalf("%s: %v", archName, err)
			}
			want := uint32(unix.SECCOMP_RET_USER_NOTIF)
			if !listed[nr] {
				if want, err = interpret(plain, call{nr: nr, arch: arch}); err != nil {
					t.Fatalf("%s: %v", archName, err)
				}
			}
			if got != want {
				t.Errorf("%s: call %d is %s, want %s", archName, nr, verdictName(got), verdictName(want))
			}
		}
	}
}

// A block that a jump cannot skip must be an error, not a program that jumps elsewhere.
func TestAssembleRefusesLongBlocks(t *testing.T) {
	values := make([]uint32, 300)
	_, err := assemble(unix.AUDIT_ARCH_X86_64, []rule{{"x", 1, 1, unix.EPERM, []condition{argIn(0, values...)}}})
	if err == nil {
		t.Fatal("no error")
	}
}
