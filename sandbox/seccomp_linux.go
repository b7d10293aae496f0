package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the fields of the kernel's struct seccomp_data lie. Both architectures that have rules are
// little-endian, so the low half of an argument is at its own offset.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
	sizeofArg    = 8
)

// x32Bit marks, in the number of a call on amd64, the x32 form of that call, which enters with the same
// architecture value as the usual one and would slip past every comparison of numbers.
const x32Bit = 0x40000000

// numberSkipped is what a tracer puts in place of the number to have a call skipped.
const numberSkipped = 0xffffffff

const maxInstructions = 4096 // the kernel's BPF_MAXINSNS

// rule refuses one system call with Errno, where all conditions hold. Rules of one call stand together
// and are tried in their order; a call that no rule refuses is allowed.
type rule struct {
	name  string
	amd64 int // the call's number; absent where the architecture hasn't got it
	arm64 int
	errno unix.Errno  // or pretend, or notify
	when  []condition // none: always
}

const absent = -1

// Answers in place of an errno.
const (
	// pretend skips the call and tells of success.
	pretend unix.Errno = 0
	// notify has the filter's listener decide what becomes of the call. It is more than the kernel takes as an errno.
	notify unix.Errno = 0xffff
)

func (r rule) verdict() uint32 {
	if r.errno == notify {
		return unix.SECCOMP_RET_USER_NOTIF
	}
	return refuse(r.errno)
}

func (r rule) number(arch uint32) int {
	if arch == unix.AUDIT_ARCH_AARCH64 {
		return r.arm64
	}
	return r.amd64
}

// condition compares one argument of a call, masked, with a list of values. With none set it holds if
// the argument is not one of them.
//
// Only the low 32 bits are loaded, or with high set the others. That is exact, not a shortcut: the kernel takes every argument that
// the rules look at as an int or shorter, or (the flags of clone) uses only that half; where a pointer is looked at,
// both halves are. A comparison of
// all 64 bits would be a hole, since ioctl(fd, TIOCSTI | 1<<32) is TIOCSTI to the kernel.
type condition struct {
	arg  int
	mask uint32
	none bool
	of   []uint32
	high bool
}

const wholeWord = 0xffffffff

func argIn(arg int, of ...uint32) condition    { return condition{arg, wholeWord, false, of, false} }
func argNotIn(arg int, of ...uint32) condition { return condition{arg, wholeWord, true, of, false} }
func maskedIn(arg int, mask uint32, of ...uint32) condition {
	return condition{arg, mask, false, of, false}
}

func anyHighBit(arg int) condition { return condition{arg, wholeWord, true, []uint32{0}, true} }

func anyBit(arg int, mask uint32) condition { return condition{arg, mask, true, []uint32{0}, false} }

// assemble turns rules into a program for one architecture. It is pure. The program's parts:
//
//  1. Another architecture than arch kills the process. On amd64 that is a 32-bit program, which has
//     its own numbers. Refusing its calls with an errno would include its exit, so that it ends in a
//     crash or in a loop; SIGSYS says what is the matter.
//  2. x32 calls get ENOSYS, which is what a kernel without them says.
//  3. Each call that has a rule is compared by number, and its arguments if the rule has conditions.
//  4. The rest is allowed.
//
// Steps 2 to 4 read nothing but number and architecture for calls without conditions, so that the
// kernel (5.11 and later) finds out beforehand which calls are always allowed and runs no program for
// those; that is why the plain list is as fast as a search tree.
func assemble(arch uint32, rules []rule) ([]unix.SockFilter, error) {
	p := []unix.SockFilter{
		load(offsetArch),
		jumpEqual(arch, 1, 0),
		ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetNumber),
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		p = append(p,
			// A tracer's "skip this call" has the x32 bit too; it must stay what it is, else the
			// value that the tracer wants the call to return is lost.
			jumpEqual(numberSkipped, 2, 0),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: x32Bit},
			ret(refuse(unix.ENOSYS)),
		)
	}
	for i := 0; i < len(rules); {
		same := i + 1
		for same < len(rules) && rules[same].name == rules[i].name {
			same++
		}
		if nr := rules[i].number(arch); nr != absent {
			block, err := assembleCall(rules[i:same])
			if err != nil {
				return nil, err
			}
			p = append(p, jumpEqual(uint32(nr), 0, uint8(len(block))))
			p = append(p, block...)
		}
		i = same
	}
	p = append(p, ret(unix.SECCOMP_RET_ALLOW))
	if len(p) > maxInstructions {
		return nil, fmt.Errorf("bug: seccomp program has %d instructions, the kernel takes %d", len(p), maxInstructions)
	}
	return p, nil
}

// assembleCall gives what is executed for one call: its rules in order, and then, since the
// accumulator no longer holds the number, the verdict that it is allowed.
func assembleCall(rules []rule) ([]unix.SockFilter, error) {
	var block []unix.SockFilter
	for _, r := range rules {
		code := []unix.SockFilter{ret(r.verdict())}
		for i := len(r.when) - 1; i >= 0; i-- {
			code = append(r.when[i].assemble(uint8(len(code))), code...)
		}
		block = append(block, code...)
		if len(r.when) == 0 {
			return checkedBlock(r.name, block)
		}
	}
	return checkedBlock(rules[0].name, append(block, ret(unix.SECCOMP_RET_ALLOW)))
}

// checkedBlock holds the invariant that a conditional jump, which has 8 bits, can skip a block.
func checkedBlock(name string, block []unix.SockFilter) ([]unix.SockFilter, error) {
	if len(block) > 255 {
		return nil, fmt.Errorf("bug: seccomp rules of %s have %d instructions, a jump reaches 255", name, len(block))
	}
	return block, nil
}

// assemble gives the code of one condition: it goes on behind itself if the condition holds and skips
// rest more instructions if not.
func (c condition) assemble(rest uint8) []unix.SockFilter {
	half := 0
	if c.high {
		half = sizeofArg / 2
	}
	code := []unix.SockFilter{load(uint32(offsetArgs + sizeofArg*c.arg + half))}
	if c.mask != wholeWord {
		code = append(code, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
	}
	for i, v := range c.of {
		left := uint8(len(c.of) - 1 - i) // comparisons after this one
		switch {
		case c.none:
			code = append(code, jumpEqual(v, left+rest, 0))
		case left > 0:
			code = append(code, jumpEqual(v, left, 0))
		default:
			code = append(code, jumpEqual(v, 0, rest))
		}
	}
	return code
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jumpEqual(k uint32, jt, jf uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: jt, Jf: jf, K: k}
}

func ret(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

func refuse(errno unix.Errno) uint32 {
	return unix.SECCOMP_RET_ERRNO | uint32(errno)&unix.SECCOMP_RET_DATA
}

// auditArch is the kernel's name of the architecture that this program was built for.
func auditArch() (uint32, error) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, nil
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("no seccomp rules for %s", runtime.GOARCH)
}

// installFilter puts the calling thread, and whatever it forks, under the filter for ever. The thread
// must be locked to its goroutine and must have no_new_privs. Other threads are left alone (no
// SECCOMP_FILTER_FLAG_TSYNC): init itself still has to work when the run is under the filter. flags are
// SECCOMP_FILTER_FLAG_*; fd is the listener's if they ask for one, and close-on-exec.
func installFilter(rules []rule, flags uintptr) (fd int, err error) {
	program, err := assembleHere(rules)
	if err != nil {
		return -1, err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("install the seccomp filter: %w", errno)
	}
	return int(r), nil
}

// filterInstaller is installFilter, or puts another process under the filter. The listener's descriptor is this process's in
// any case.
type filterInstaller func(rules []rule, flags uintptr) (fd int, err error)

func assembleHere(rules []rule) ([]unix.SockFilter, error) {
	arch, err := auditArch()
	if err != nil {
		return nil, err
	}
	return assemble(arch, rules)
}
