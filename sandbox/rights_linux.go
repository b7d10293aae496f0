package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The bits of PR_SET_SECUREBITS (linux/securebits.h), each followed by the one that locks it.
const (
	secbitNoRoot = 1 << iota
	secbitNoRootLocked
	secbitNoSetuidFixup
	secbitNoSetuidFixupLocked
	secbitKeepCaps
	secbitKeepCapsLocked
	secbitNoAmbientRaise
	secbitNoAmbientRaiseLocked
)

// securebits are set for good: a uid 0 gets nothing from being 0, neither over exec nor by changing
// its uid, no capability outlives a change of uid, and none can be made ambient.
const securebits = secbitNoRoot | secbitNoRootLocked |
	secbitNoSetuidFixup | secbitNoSetuidFixupLocked |
	secbitKeepCapsLocked |
	secbitNoAmbientRaise | secbitNoAmbientRaiseLocked

// dropRights takes every right from the calling thread and from all that it will fork or execute. The
// goroutine must be locked to its thread and must never be unlocked again: rights, securebits,
// no_new_privs and the filter are attributes of a thread, and only this one is changed, so that init's
// other threads can go on. It cannot be undone, and on an error the thread must not go on. The payload's thread does it in
// two parts: see dropRightsAhead and confine.
//
// The order is the kernel's:
//
//  1. the ambient set, which would be given to the payload at exec;
//  2. the bounding set, while CAP_SETPCAP is still there: no exec can gain what is not in it;
//  3. the securebits, which need CAP_SETPCAP too;
//  4. no_new_privs: setuid bits and file capabilities do nothing at exec; and without it a thread
//     that has no CAP_SYS_ADMIN may not install a filter;
//  5. effective, permitted and inheritable: from here on the thread has no capability;
//  6. the filter, last, because it is the one thing that could refuse a step above.
func dropRights() error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	_, err := installFilter(refusedHere(), 0)
	return err
}

// dropRightsAhead is dropRights for a thread that goes on to set up a run: its filter lacks the rules that depend on
// which threads this process has then.
func dropRightsAhead() error {
	if err := dropCapabilities(); err != nil {
		return err
	}
	_, err := installFilter(refusedAlways(), 0)
	return err
}

// dropCapabilities is dropRights without its last step, the filter.
func dropCapabilities() error {
	if err := freezeCapabilities(); err != nil {
		return err
	}
	return clearCapabilities()
}

// freezeCapabilities is what dropRights does but for its last two steps: the calling thread has the capabilities that it
// has, and nothing gives it or what it executes another.
func freezeCapabilities() error {
	// EINVAL: a kernel from before the ambient set (4.3), which then has none to clear.
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("clear the ambient capabilities: %w", err)
	}
	if err := dropBoundingSet(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
		return fmt.Errorf("lock the securebits: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// clearCapabilities is the last step but one of dropRights.
func clearCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData // version 3 has two words for each set
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop the capabilities: %w", err)
	}
	return nil
}

// dropBoundingSet drops each capability that the kernel knows. It asks the kernel for the last one, so
// that a capability newer than this program is dropped too.
func dropBoundingSet() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > unix.CAP_CHOWN {
			return nil // one beyond the last
		}
		if err != nil {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
}
