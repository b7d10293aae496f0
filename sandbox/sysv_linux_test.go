package sandbox

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What System V objects take is what was put into them. Others on the host may make some meanwhile, so that there is more than one attempt.
func TestSystemVObjects(t *testing.T) {
	const segment, semaphores, message = 1 << 20, 500, 4000
	grown := func(measure func() int64, create func(t *testing.T)) int64 {
		before := measure()
		create(t)
		return measure() - before
	}
	for _, test := range []struct {
		name    string
		measure func() int64
		want    int64
		create  func(t *testing.T)
	}{
		{"a segment that nobody has attached", segments, segment, func(t *testing.T) {
			id, err := unix.SysvShmGet(unix.IPC_PRIVATE, segment, unix.IPC_CREAT|0o600)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
			b, err := unix.SysvShmAttach(id, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range b {
				b[i] = 1
			}
			if err := unix.SysvShmDetach(b); err != nil {
				t.Fatal(err)
			}
		}},
		{"semaphores", ipcObjects, semaphores * semaphoreSize, func(t *testing.T) {
			id, _, errno := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, semaphores, 0o600)
			if errno != 0 {
				t.Fatal(errno)
			}
			t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID) })
		}},
		{"a message", ipcObjects, message + messageSize, func(t *testing.T) {
			id, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, 0o600, 0)
			if errno != 0 {
				t.Fatal(errno)
			}
			t.Cleanup(func() { _, _, _ = unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) })
			text := make([]byte, 8+message) // its type, and what is in it
			text[0] = 1
			if _, _, errno := unix.Syscall6(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&text[0])), message, 0, 0, 0); errno != 0 {
				t.Fatal(errno)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got int64
			for range 3 {
				if got = grown(test.measure, test.create); got == test.want {
					return
				}
			}
			t.Errorf("grown by %d, want %d", got, test.want)
		})
	}
}
