// Package mountinfo reads what the kernel writes into /proc/self/mountinfo.
//
// It promises what proc_pid_mountinfo(5) says of one field, and nothing of the host: which mounts matter,
// and what a line means, is the caller's to know. A path in there can be named by whoever may mount, and is
// bytes, not text.
package mountinfo

import (
	"strconv"
	"strings"
)

// Unescape undoes the kernel's octal escapes of what would break a line into fields: space, tab, newline
// and backslash.
func Unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
