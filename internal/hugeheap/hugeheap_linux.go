// Package hugeheap has the first megabytes of a process's heap in huge pages, where that pays. Each page that a process
// touches for the first time is a fault. As a rule that costs less than a microsecond. On a guest whose page tables
// its host keeps it is some 20 µs, and then it is most of what the start of a program costs: a server touches some
// 1,000 pages of its heap before its first run, an init some 200. 2 MiB in one page cost 0.3 ms there.
//
// Importing the package has that done for what comes after its own initialisation, which is early, since it needs next to
// nothing, and so for the packages whose tables take long to set up.
package hugeheap

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

const (
	hugePage  = 2 << 20
	smallPage = 4 << 10
	// arenaSize is what the runtime maps its heap in, and aligns it to (heapArenaBytes of runtime/malloc.go).
	arenaSize = 64 << 20
	// slowFault is what a fault takes at least where it pays.
	slowFault = 10 * time.Microsecond

	// MADV_HUGEPAGE and MADV_COLLAPSE of linux/mman.h. The second is in no package that would not come later than this one.
	adviseHugePage = 14
	adviseCollapse = 25
)

// lean are processes, by the names that sandbox/roles_linux.go gives them, that live as long as a server and have nothing to
// do: 2 MiB more of each are not worth their start.
var lean = map[string]bool{"airlock-janitor": true, "airlock-starter": true}

var pays bool

func init() {
	if len(os.Args) > 0 && lean[os.Args[0]] {
		return
	}
	pays = faultTime() >= slowFault
	Extend()
}

// kept keeps what is allocated here out of the stack.
var kept []byte

// faultTime is what the first write to a page takes here and now.
func faultTime() time.Duration {
	const pages = 4
	kept = make([]byte, pages*smallPage) // fresh from the kernel, this early, and of zeroes, which nobody has to write
	start := time.Now()
	for at := 0; at < len(kept); at += smallPage {
		kept[at] = 1
	}
	return time.Since(start) / pages
}

// Extend has what is allocated next lie in huge pages: in the one that the heap has come to, whose small pages are
// collapsed into it, and in the one after that. Where the kernel does not do it, or it does not pay, the heap is as it was.
func Extend() {
	if !pays {
		return
	}
	kept = make([]byte, 1<<10)
	start := uintptr(unsafe.Pointer(&kept[0])) &^ (hugePage - 1)
	size := uintptr(hugePage)
	if (start+hugePage)%arenaSize != 0 {
		size += hugePage // what of it the runtime has not mapped yet comes without
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_MADVISE, start, size, adviseHugePage); errno == 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_MADVISE, start, hugePage, adviseCollapse)
	}
}
