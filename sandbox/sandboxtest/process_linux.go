package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onVictim aims an attack at init, or for a control at a process that stands in for it.
func onVictim(attack func(s *stage, pid int) error) func(*stage) error {
	return func(s *stage) error {
		pid, done, err := s.victim()
		if err != nil {
			return err
		}
		defer done()
		return attack(s, pid)
	}
}

// signalsToInit sends each signal that could end a process. That kill(2) succeeds means nothing: what counts is who
// is alive afterwards.
func signalsToInit(s *stage) error {
	pid, done, err := s.victim()
	if err != nil {
		return err
	}
	defer done()
	for signal := unix.Signal(1); signal <= 64; signal++ {
		_ = unix.Kill(pid, signal)
	}
	return afterwards(pid)
}

// queueSignals does the same by a call that Go's runtime does not take for kill(2).
func queueSignals(_ *stage, pid int) error {
	const queued = ^uint32(0) // SI_QUEUE
	for signal := uint32(1); signal <= 64; signal++ {
		info := [32]uint32{signal, 0, queued} // siginfo_t
		_ = call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(signal), uintptr(unsafe.Pointer(&info)))()
	}
	return afterwards(pid)
}

func pidfdSignal(s *stage) error {
	pid, done, err := s.victim()
	if err != nil {
		return err
	}
	defer done()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	return afterwards(pid)
}

// afterwards waits whether a process goes. One that can't be asked for (EPERM) is there.
func afterwards(pid int) error {
	for range 30 {
		if unix.Kill(pid, 0) == unix.ESRCH {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errUnharmed
}

func attach(_ *stage, pid int) error {
	runtime.LockOSThread()        // tracing is a thread's
	return unix.PtraceAttach(pid) // and its end detaches it
}

func seize(_ *stage, pid int) error {
	runtime.LockOSThread()
	return unix.PtraceSeize(pid)
}

// target is at the same address in every process of this program, if that is not loaded anywhere else.
var target [8]byte

func readMemory(_ *stage, pid int) error {
	var b [8]byte
	local := unix.Iovec{Base: &b[0], Len: 8}
	_, err := unix.ProcessVMReadv(pid, []unix.Iovec{local},
		[]unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&target)), Len: 8}}, 0)
	return err
}

func writeMemory(_ *stage, pid int) error {
	b := [8]byte{1}
	local := unix.Iovec{Base: &b[0], Len: 8}
	_, err := unix.ProcessVMWritev(pid, []unix.Iovec{local},
		[]unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&target)), Len: 8}}, 0)
	return err
}

// procOf opens what /proc has of a process.
func procOf(name string, flags int) func(*stage, int) error {
	return func(_ *stage, pid int) error { return open(fmt.Sprintf("/proc/%d/%s", pid, name), flags) }
}

// overwriteBinary is how a container once replaced the host's runc (CVE-2019-5736): open the binary that a process of
// the host's runs, and write to it once it isn't busy any more.
func overwriteBinary(s *stage) error {
	if s.Inside {
		fd, err := unix.Open("/proc/1/exe", unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
	}
	// The control does it to a copy of this program, in another process.
	name := s.Tmp + "-binary"
	program, err := os.ReadFile(s.Binary)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, program, 0o755); err != nil {
		return err
	}
	defer os.Remove(name)
	cmd := exec.Command(name, role, "wait", s.File)
	if _, err := cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid), unix.O_PATH, 0)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		return err
	}
	return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY)
}

// followDescriptor reads where a descriptor of another process leads. (Their numbers can be listed by who has the same
// uid in the eyes of the kernel, which for a process that is not dumpable is 0.)
func followDescriptor(_ *stage, pid int) error {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", pid))
	return err
}

// stealDescriptor takes a copy of a descriptor of another process.
func stealDescriptor(_ *stage, pid int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	fd, err := unix.PidfdGetfd(process, 0, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// onThreads makes an attempt on each thread of a process, any of which will do: one that gets through is a success.
func onThreads(pid int, attempt func(thread int) error) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := attempt(id); err != unix.EPERM {
			return err
		}
	}
	return unix.EPERM
}

// setLimits takes from another process what it needs to go on: open files, so that it can't look at anything any more.
func setLimits(_ *stage, pid int) error {
	return onThreads(pid, func(thread int) error {
		return unix.Prlimit(thread, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	})
}

// scheduleLast has a process run only when nobody else wants to.
func scheduleLast(_ *stage, pid int) error {
	return onThreads(pid, func(thread int) error {
		return unix.SchedSetAttr(thread, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	})
}

// bind leaves a process one processor, which others can keep busy.
func bind(_ *stage, pid int) error {
	var one, all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	return onThreads(pid, func(thread int) error { return unix.SchedSetaffinity(thread, &one) })
}

func makeNice(_ *stage, pid int) error {
	return onThreads(pid, func(thread int) error { return unix.Setpriority(unix.PRIO_PROCESS, thread, 19) })
}

func idleInput(_ *stage, pid int) error {
	const (
		process = 1
		idle    = 3 << 13
	)
	return onThreads(pid, func(thread int) error { return call(unix.SYS_IOPRIO_SET, process, uintptr(thread), idle)() })
}

// compare asks whether two processes have the same descriptor, which tells the order of kernel addresses.
func compare(_ *stage, pid int) error {
	return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 0, 0, 0)()
}

// call makes a system call.
func call(nr uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return errno
		}
		return nil
	}
}

// calling is call for a table.
func calling(nr uintptr, args ...uintptr) func(*stage) error {
	return func(*stage) error { return call(nr, args...)() }
}

const minusOne = ^uintptr(0)
