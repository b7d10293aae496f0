package sandbox

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canTrace says that a stopped caller can be had for this architecture.
const canTrace = true

// stopped is a process that waits in a read and is stopped there, with the calling thread as its tracer. All methods are
// that thread's.
type stopped struct {
	pid  int
	regs unix.PtraceRegs // as it was stopped

	patient bool // its calls may take for ever, and nothing else is to wait for them
}

// readInterrupted is what the kernel leaves as the result of a read that begins anew (linux/errno.h, ERESTARTSYS).
const readInterrupted = 512

// sizeofSyscall is how long the instruction is that makes a system call, in bytes.
const sizeofSyscall = 2

// stopInRead stops a child once it waits in a read.
func stopInRead(pid int, until time.Time) (*stopped, error) {
	if err := unix.PtraceSeize(pid); err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	s := &stopped{pid: pid}
	for {
		if err := unix.PtraceInterrupt(pid); err != nil {
			return nil, fmt.Errorf("interrupt: %w", err)
		}
		if err := s.wait(); err != nil {
			return nil, err
		}
		if err := unix.PtraceGetRegs(pid, &s.regs); err != nil {
			return nil, fmt.Errorf("get registers: %w", err)
		}
		if s.regs.Orig_rax == unix.SYS_READ && -int64(s.regs.Rax) == readInterrupted {
			return s, nil
		}
		if time.Now().After(until) {
			return nil, errors.New("it does not read")
		}
		if err := unix.PtraceCont(pid, 0); err != nil {
			return nil, fmt.Errorf("go on: %w", err)
		}
		nap(100 * time.Microsecond)
	}
}

// call has the process make a system call, by the instruction that it is stopped behind.
func (s *stopped) call(number uintptr, args ...uintptr) (uintptr, error) {
	r := s.again(uint64(number))
	for i, at := range []*uint64{&r.Rdi, &r.Rsi, &r.Rdx}[:len(args)] {
		*at = uint64(args[i])
	}
	if err := unix.PtraceSetRegs(s.pid, &r); err != nil {
		return 0, fmt.Errorf("set registers: %w", err)
	}
	if err := unix.PtraceSingleStep(s.pid); err != nil {
		return 0, fmt.Errorf("step: %w", err)
	}
	if err := s.wait(); err != nil {
		return 0, err
	}
	if err := unix.PtraceGetRegs(s.pid, &r); err != nil {
		return 0, fmt.Errorf("get registers: %w", err)
	}
	if result := int64(r.Rax); result < 0 && result > -4096 {
		return 0, unix.Errno(-result)
	}
	return uintptr(r.Rax), nil
}

// release has the process begin its read anew, and traces it no longer.
func (s *stopped) release() error {
	r := s.again(unix.SYS_READ)
	if err := unix.PtraceSetRegs(s.pid, &r); err != nil {
		return fmt.Errorf("set registers: %w", err)
	}
	return unix.PtraceDetach(s.pid)
}

// again gives the registers with which the process makes a call by the instruction that it has just made one by. Without
// a former call (Orig_rax) the kernel begins none anew.
func (s *stopped) again(number uint64) unix.PtraceRegs {
	r := s.regs
	r.Rip -= sizeofSyscall
	r.Rax, r.Orig_rax = number, ^uint64(0)
	return r
}

// wait returns when the process is stopped, and only for its tracer. That is mostly some ten microseconds away: Go's scheduler is
// not told of the call then, since it would find another thread for the processor meanwhile.
func (s *stopped) wait() error {
	for {
		var ws unix.WaitStatus
		var err error
		if s.patient {
			_, err = unix.Wait4(s.pid, &ws, unix.WALL, nil)
		} else if _, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, uintptr(s.pid), uintptr(unsafe.Pointer(&ws)), unix.WALL, 0, 0, 0); errno != 0 {
			err = errno
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case !ws.Stopped() || ws.StopSignal() != unix.SIGTRAP:
			return fmt.Errorf("it was not stopped but changed its state (%#x)", uint32(ws))
		}
		return nil
	}
}
