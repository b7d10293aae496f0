package sandbox

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The commands of shmctl(2), semctl(2) and msgctl(2) that tell what all objects of the caller's IPC namespace take together.
const (
	shmInfo = 14
	semInfo = 19
	msgInfo = 12
)

// segments are the bytes of System V shared memory in the run's IPC namespace, attached or not; 0 where the kernel has none.
func segments() int64 {
	// The kernel's struct shm_info.
	var info struct {
		used                        int32
		total, resident, swappedOut uintptr // pages
		_, _                        uintptr
	}
	if _, _, errno := unix.Syscall(unix.SYS_SHMCTL, 0, shmInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return 0
	}
	return int64(info.resident+info.swappedOut) * int64(os.Getpagesize())
}

const (
	// semaphoreSize is what the kernel takes for one System V semaphore, in bytes.
	semaphoreSize = 64
	// messageSize is about what it takes for a message with nothing in it, in bytes.
	messageSize = 64
)

// ipcObjects are the bytes that the System V semaphores and messages of the run's IPC namespace take. They belong to no
// process. What the kernel does not tell is 0. Its sums are ints: by default a new namespace allows 32,000 queues of 16 KiB, some 500 MiB.
func ipcObjects() int64 {
	var sum int64
	// The kernel's struct seminfo, of which the last tells all semaphores.
	var semaphores [10]int32
	if _, _, errno := unix.Syscall6(unix.SYS_SEMCTL, 0, 0, semInfo, uintptr(unsafe.Pointer(&semaphores)), 0, 0); errno == 0 {
		sum += int64(semaphores[9]) * semaphoreSize
	}
	// The kernel's struct msginfo, of which the second tells all messages and the seventh their bytes.
	var messages struct {
		numbers [7]int32
		_       uint16
	}
	if _, _, errno := unix.Syscall(unix.SYS_MSGCTL, 0, msgInfo, uintptr(unsafe.Pointer(&messages))); errno == 0 {
		sum += int64(messages.numbers[1])*messageSize + int64(messages.numbers[6])
	}
	return sum
}
