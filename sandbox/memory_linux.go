package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// footprint is what a run was found to hold at one look: all but the tasks in bytes.
type footprint struct {
	tasks   int   // processes and threads, zombies and those of init included
	private int64 // what processes have for themselves: anonymous memory, also where it is swapped out, and page tables
	shared  int64 // what they have mapped of shared memory
	objects int64 // shared memory that is there whether it is mapped or not: tmpfs, System V segments, memfds
	scratch int64 // what the private tmpfs holds; part of objects where memory is measured
	kernel  int64 // what the kernel keeps for the run that is nobody's memory: semaphores, messages, inodes of the tmpfs
}

// atMost is never less than what the run holds: a page that several processes share is counted for each,
// and one that is mapped from an object twice.
func (f footprint) atMost() int64 { return f.private + f.shared + f.objects + f.kernel }

// memoryMeter measures the processes of the pid namespace that its /proc shows, of which it must be init. The
// payload can make that slow, but can't make a process vanish from it.
type memoryMeter struct {
	proc    *os.File
	scratch *os.File // any directory of the private tmpfs
	memory  bool     // false: only tasks are counted

	buf    []byte
	dirBuf []byte
	pids   []int

	memfds   int64     // what the last scan of descriptors has found
	nextScan time.Time // a scan may take long, and never takes more than a tenth of the time
}

func newMemoryMeter(scratch *os.File) (*memoryMeter, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	return &memoryMeter{proc: proc, scratch: scratch, buf: make([]byte, 32<<10), dirBuf: make([]byte, 32<<10)}, nil
}

// look measures by what the kernel counts anyway, without a walk through page tables.
func (m *memoryMeter) look() (footprint, error) {
	f, err := m.lookAtObjects()
	if err == nil {
		err = m.listProcesses()
	}
	if err != nil {
		return f, err
	}
	for i, pid := range m.pids {
		s := m.status(pid)
		if s.zombie && s.threads > 1 && m.memory {
			// The first thread has ended and the others go on: the process is theirs, and its memory is seen through one of them.
			if thread := m.liveThread(pid); thread != 0 {
				m.pids[i] = thread
				threads := s.threads
				s = m.status(thread)
				s.threads = threads
			}
		}
		f.tasks += s.threads
		f.private += s.private
		f.shared += s.shared
	}
	if m.memory {
		f.objects += m.memfdBytes()
	}
	return f, nil
}

// lookAtObjects measures what is there whether a process has it or not. A memfd is not: it goes with the last process that has it,
// so that it is look's.
func (m *memoryMeter) lookAtObjects() (footprint, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(m.scratch.Fd()), &st); err != nil {
		return footprint{}, err
	}
	f := footprint{scratch: int64(st.Blocks-st.Bfree) * st.Bsize}
	if m.memory {
		f.objects = f.scratch + segments()
		f.kernel = ipcObjects() + int64(st.Files-st.Ffree)*inodeSize
	}
	return f, nil
}

// inodeSize is about what the kernel takes for a file of a tmpfs with nothing in it, in bytes.
const inodeSize = 1 << 10

// exactly replaces the sums of a look by shares (PSS), so that a page of several processes counts once.
// It walks all page tables: some 30 ms for a GiB.
func (m *memoryMeter) exactly(f footprint) int64 {
	var private, shared int64
	for _, pid := range m.pids {
		if pid == 1 {
			continue
		}
		s := m.status(pid)
		if p, ok := m.shares(pid); ok {
			// Page tables are of one process always.
			private += p.private + s.tables
			shared += p.shared
		} else {
			private += s.private
			shared += s.shared
		}
	}
	// Which part of the mapped shared memory belongs to an object isn't known: at least the larger of the two
	// is there.
	return private + max(shared, f.objects) + f.kernel
}

// liveThread is a thread of a process that has not ended; 0 if there is none.
func (m *memoryMeter) liveThread(pid int) (found int) {
	m.eachThread(pid, func(thread int) {
		if found == 0 && thread != pid && !m.status(thread).zombie {
			found = thread
		}
	})
	return found
}

// eachThread calls do for each thread of a process.
func (m *memoryMeter) eachThread(pid int, do func(thread int)) {
	fd, err := unix.Openat(int(m.proc.Fd()), strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = eachEntry(fd, make([]byte, 4096), func(name string) {
		if thread, err := strconv.Atoi(name); err == nil {
			do(thread)
		}
	})
}

// processMemory is what one process has, in bytes.
type processMemory struct {
	zombie                  bool
	threads                 int
	private, shared, tables int64
}

// status reads /proc/PID/status. A process that is gone has nothing.
func (m *memoryMeter) status(pid int) processMemory {
	var p processMemory
	m.fields(strconv.Itoa(pid)+"/status", func(key, value []byte) {
		switch string(key) {
		case "State":
			p.zombie = bytes.HasPrefix(bytes.TrimSpace(value), []byte("Z"))
		case "Threads":
			p.threads = int(number(value))
		case "RssAnon", "VmSwap", "HugetlbPages":
			p.private += kilobytes(value)
		case "RssShmem":
			p.shared += kilobytes(value)
		case "VmPTE":
			p.tables = kilobytes(value)
			p.private += p.tables
		}
	})
	if pid == 1 {
		p = processMemory{threads: p.threads} // init is ours
	}
	return p
}

// shares reads /proc/PID/smaps_rollup, which asks for the right to trace: init has it over all processes
// that its user namespace may have.
func (m *memoryMeter) shares(pid int) (p processMemory, ok bool) {
	m.fields(strconv.Itoa(pid)+"/smaps_rollup", func(key, value []byte) {
		switch string(key) {
		case "Pss_Anon":
			ok = true
			p.private += kilobytes(value)
		case "SwapPss", "Private_Hugetlb", "Shared_Hugetlb":
			p.private += kilobytes(value)
		case "Pss_Shmem":
			p.shared += kilobytes(value)
		}
	})
	return p, ok
}

// memfdPrefix is how the kernel names a file that memfd_create(2) has made.
const memfdPrefix = "/memfd:"

// memfdBytes are the bytes of the memfds that processes have open; each counts once. One that is only
// in flight between two sockets isn't seen.
func (m *memoryMeter) memfdBytes() int64 {
	start := time.Now()
	if start.Before(m.nextScan) {
		return m.memfds
	}
	seen := make(map[uint64]bool)
	var sum int64
	look := func(thread int) {
		dir := strconv.Itoa(thread) + "/fd"
		fd, err := unix.Openat(int(m.proc.Fd()), dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		_ = eachEntry(fd, m.dirBuf, func(name string) {
			var target [len(memfdPrefix)]byte // a path can't begin so: the root of a run is sealed
			if n, err := unix.Readlinkat(fd, name, target[:]); err != nil || string(target[:n]) != memfdPrefix {
				return
			}
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, 0) == nil && !seen[st.Ino] {
				seen[st.Ino] = true
				sum += st.Blocks * 512
			}
		})
	}
	for _, pid := range m.pids {
		if pid == 1 {
			continue
		}
		look(pid)
		m.eachThread(pid, func(thread int) {
			if thread != pid && !sameFiles(pid, thread) {
				look(thread) // it has taken a table of its own
			}
		})
	}
	m.memfds = sum
	m.nextScan = start.Add(10 * time.Since(start))
	return sum
}

// sameFiles reports whether two threads have one table of descriptors. Where the kernel doesn't say, they may not.
func sameFiles(a, b int) bool {
	const kcmpFiles = 2
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFiles, 0, 0, 0)
	return errno == 0 && r == 0
}

// listProcesses finds the processes of the namespace, in the order of their pids.
func (m *memoryMeter) listProcesses() error {
	m.pids = m.pids[:0]
	if _, err := m.proc.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return eachEntry(int(m.proc.Fd()), m.dirBuf, func(name string) {
		if pid, err := strconv.Atoi(name); err == nil {
			m.pids = append(m.pids, pid)
		}
	})
}

// eachEntry calls do for each name in an open directory.
func eachEntry(fd int, buf []byte, do func(name string)) error {
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			do(name)
		}
	}
}

// fields reads a file of lines "Key: value".
func (m *memoryMeter) fields(name string, do func(key, value []byte)) {
	b, err := m.read(name)
	if err != nil {
		return
	}
	for line := range bytes.Lines(b) {
		if key, value, ok := bytes.Cut(line, []byte{':'}); ok {
			do(key, value)
		}
	}
}

// read gives what a file below /proc holds, until the next call.
func (m *memoryMeter) read(name string) ([]byte, error) {
	fd, err := unix.Openat(int(m.proc.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	length := 0
	for {
		if length == len(m.buf) {
			m.buf = append(m.buf, make([]byte, len(m.buf))...)
		}
		n, err := unix.Read(fd, m.buf[length:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return m.buf[:length], nil
		}
		length += n
	}
}

// available is how much memory the host could still give out without swapping, in bytes; 0 if it doesn't
// say.
func (m *memoryMeter) available() int64 {
	var bytes int64
	m.fields("meminfo", func(key, value []byte) {
		if string(key) == "MemAvailable" {
			bytes = kilobytes(value)
		}
	})
	return bytes
}

// kilobytes reads "  123 kB".
func kilobytes(value []byte) int64 { return number(value) << 10 }

// number reads the first number in a text; 0 if there is none.
func number(text []byte) int64 {
	text = bytes.TrimSpace(text)
	if i := bytes.IndexByte(text, ' '); i >= 0 {
		text = text[:i]
	}
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}
