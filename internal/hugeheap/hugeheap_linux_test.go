package hugeheap

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// What the heap has come to lies in a huge page then.
func TestExtend(t *testing.T) {
	setting, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if strings.Contains(string(setting), "[always]") {
		t.Skip("the kernel gives everybody huge pages")
	}
	before := pays
	defer func() { pays = before }()
	pays = true
	Extend()
	place := uintptr(unsafe.Pointer(&kept[0]))
	kib, err := hugeAt(place)
	if err != nil {
		t.Fatal(err)
	}
	if kib < hugePage>>10 {
		t.Skipf("the kernel gave no huge page (%s)", strings.TrimSpace(string(setting)))
	}
	if kept[0] != 0 {
		t.Error("what was there has changed")
	}
}

// hugeAt is how much memory in huge pages, in KiB, the mapping has that holds an address.
func hugeAt(place uintptr) (kib int, err error) {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return 0, err
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from <= place && place < to
		}
		if n, _ := fmt.Sscanf(line, "AnonHugePages: %d kB", &kib); n == 1 && inside {
			return kib, nil
		}
	}
	return 0, fmt.Errorf("no mapping holds %#x", place)
}

// Where it does not pay, nothing is asked of the kernel.
func TestExtendWhereFaultsAreCheap(t *testing.T) {
	before := pays
	defer func() { pays = before }()
	pays, kept = false, nil
	Extend()
	if kept != nil {
		t.Error("the heap was looked at")
	}
}
