//go:build unix

package sandbox

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookPath finds a command as execvp(3) does, by the PATH of the run's environment, never the server's, and
// with the rights of the calling thread. The error is a bare syscall.Errno.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	result := error(syscall.ENOENT)
	for _, dir := range strings.Split(getenv(env, "PATH"), ":") {
		if !strings.HasPrefix(dir, "/") {
			continue // the working directory is the workspace's: nothing is found in it by accident
		}
		file := dir + "/" + name
		var st unix.Stat_t
		if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		result = syscall.EACCES
	}
	return "", result
}
