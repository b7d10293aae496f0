package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	// Overwrites the binary that the process before it was executed from: where the kernel says "text file busy", it is
	// still one's.
	roles["overwrite-own-binary"] = func([]string) {
		fd, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
		if err == nil {
			err = unix.Exec("/probe", []string{"probe", "overwrite", fmt.Sprint(fd)}, nil)
		}
		fmt.Println(err)
	}
	roles["overwrite"] = func(args []string) { fmt.Println(overwritten("/proc/self/fd/" + args[0])) }
}

// overwritten tries the ways to change a file's content, and returns nil if one of them works.
func overwritten(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte("#!"), 0)
	if err == nil {
		return nil
	}
	if b, mapErr := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_WRITE, unix.MAP_SHARED); mapErr == nil {
		defer unix.Munmap(b)
		return nil
	}
	for _, shorter := range []int64{0, 1 << 40} {
		if f.Truncate(shorter) == nil {
			return nil
		}
	}
	if unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096) == nil {
		return nil
	}
	return err
}

// The file that init is executed from takes no more writes, whoever has a descriptor of it and whatever executes it.
func TestSealedBinary(t *testing.T) {
	control, err := memoryFile("control")
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	if _, err := control.WriteString("text"); err != nil {
		t.Fatal(err)
	}
	if err := overwritten(fmt.Sprintf("/proc/self/fd/%d", control.Fd())); err != nil {
		t.Errorf("control: a memory file without seals can't be overwritten: %v", err)
	}
	sealed, err := sealSelf()
	if err != nil {
		t.Fatal(err)
	}
	defer sealed.Close()
	if err := overwritten(fmt.Sprintf("/proc/self/fd/%d", sealed.Fd())); !errors.Is(err, unix.EPERM) {
		t.Errorf("the sealed binary: %v", err)
	}
	if _, err := unix.FcntlInt(sealed.Fd(), unix.F_ADD_SEALS, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("seals can be added: %v", err)
	}
	own, err := os.Open(ownBinary())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if same, err := sameContent(own, sealed); err != nil || !same {
		t.Errorf("it is the own binary: %v, %v", same, err)
	}
}

func sameContent(a, b io.ReaderAt) (bool, error) {
	x, y := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := int64(0); ; at += int64(len(x)) {
		n, err := a.ReadAt(x, at)
		m, errB := b.ReadAt(y, at)
		if n != m || string(x[:n]) != string(y[:m]) {
			return false, nil
		}
		if err == io.EOF && errB == io.EOF {
			return true, nil
		}
		if err != nil || errB != nil {
			return false, errors.Join(err, errB)
		}
	}
}

// A command that is init's own binary, by the one name that leads to it, is not the host's to write to (CVE-2019-5736).
func TestOwnBinaryAsCommand(t *testing.T) { onEach(t, testOwnBinaryAsCommand) }

func testOwnBinaryAsCommand(t *testing.T, n Backend) {
	if ownBinary() != "/proc/self/exe" {
		t.Skip("with the race detector init is another program, which does not play the attacker; the ordinary user's half of the tests plays this")
	}
	_, out := doRun(t, n, testSpec(t, "/proc/self/exe", "overwrite-own-binary"), "")
	if out := strings.TrimSpace(out); !strings.HasSuffix(out, unix.ETXTBSY.Error()) && !strings.HasSuffix(out, unix.EPERM.Error()) {
		t.Errorf("got %q", out)
	}
}
