package sandboxtest

import (
	"golang.org/x/sys/unix"
)

// machineProbes try to change what all of the machine shares: its clock and its names.
func machineProbes() []probe {
	return []probe{
		{name: "settimeofday", try: calling(unix.SYS_SETTIMEOFDAY, 0, 0), held: refused(unix.EPERM), control: asRoot},
		{name: "clock_settime", try: calling(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, 0), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "adjtimex", try: calling(unix.SYS_ADJTIMEX, 0), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "clock_adjtime", try: calling(unix.SYS_CLOCK_ADJTIME, unix.CLOCK_REALTIME, 0), held: refused(unix.EPERM), beyond: refused(unix.EFAULT)},
		{name: "sethostname", try: func(*stage) error { return unix.Sethostname([]byte("taken")) }, held: refused(unix.EPERM), control: apart},
		{name: "setdomainname", try: func(*stage) error { return unix.Setdomainname([]byte("taken")) }, held: refused(unix.EPERM), control: apart},
		{name: "personality without protections of memory", try: calling(unix.SYS_PERSONALITY, 0x400000), held: refused(unix.EPERM)},
		{
			name: "iopl", try: portAccess, held: refused(unix.EPERM, errMissing), beyond: refused(errMissing),
			absent: refused(unix.ENOSYS), why: "this kernel was built without it",
		},
		{name: "vhangup", try: calling(unix.SYS_VHANGUP), held: refused(unix.EPERM), control: nowhere, why: "it would hang up the terminal of the test"},
	}
}
