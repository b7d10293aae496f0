package sandbox

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// exit7 is a whole 32-bit program: exit(7) by int $0x80.
func exit7() []byte {
	const base, headers = 0x08048000, 52 + 32
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, 7, 0, 0, 0, 0xcd, 0x80} // mov $1,%eax; mov $7,%ebx; int $0x80
	size := uint32(headers + len(code))
	var b bytes.Buffer
	b.Write([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	for _, v := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + headers), uint32(52), uint32(0), uint32(0), // ET_EXEC, EM_386
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000), // PT_LOAD, r-x
		code,
	} {
		_ = binary.Write(&b, binary.LittleEndian, v) // a bytes.Buffer doesn't fail
	}
	return b.Bytes()
}

type foreignReport struct {
	Unsupported     string
	Control, Filter syscall.WaitStatus
}

// A 32-bit program enters by other numbers than those that the rules compare.
func TestForeignProgramIsKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exit7")
	if err := os.WriteFile(path, exit7(), 0o755); err != nil {
		t.Fatal(err)
	}
	var got foreignReport
	runChild(t, child("TestChildForeignProgram", path, unix.CLONE_NEWUSER), &got)
	if got.Unsupported != "" {
		lacks(t, "i386", got.Unsupported)
	}
	if !got.Control.Exited() || got.Control.ExitStatus() != 7 {
		t.Errorf("without the filter: %#x, want exit status 7", got.Control)
	}
	if !got.Filter.Signaled() || got.Filter.Signal() != unix.SIGSYS {
		t.Errorf("with the filter: %#x, want SIGSYS", got.Filter)
	}
}

func TestChildForeignProgram(t *testing.T) {
	path := childArgument(t)
	runtime.LockOSThread()
	run := func() (ws syscall.WaitStatus, err error) {
		pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Env: []string{}})
		if err == nil {
			_, err = syscall.Wait4(pid, &ws, 0, nil)
		}
		return ws, err
	}
	var got foreignReport
	var err error
	if got.Control, err = run(); err != nil {
		got.Unsupported = err.Error()
		reportToParent(t, got)
		return
	}
	if err := dropRights(); err != nil {
		t.Fatal(err)
	}
	if got.Filter, err = run(); err != nil {
		t.Fatal(err)
	}
	reportToParent(t, got)
}
