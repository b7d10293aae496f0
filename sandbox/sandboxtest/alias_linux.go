package sandboxtest

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// aliasProbes try to reach what one mount forbids by way of another, which shows the same filesystem: the writable
// directory in a read-only one, a second place of the same directory, the private tmpfs with its many faces.
func aliasProbes() []probe {
	// Between mounts the kernel says EXDEV, before it asks for any right. The control is one mount.
	crossing := func(name string, try func(*stage) error) probe {
		return probe{name: name, try: try, held: refused(unix.EXDEV)}
	}
	return []probe{
		{name: "upwards out of a writable directory", try: func(s *stage) error { return open(s.Writable+"/../file", unix.O_WRONLY) }, held: refused(unix.EROFS)},
		{name: "upwards by an open writable directory", try: upFromWritable, held: refused(unix.EROFS)},
		crossing("hard link of a read-only file into a writable directory", func(s *stage) error {
			return linkAndRemove(inShown("file")(s), s.Writable+"/alias")
		}),
		crossing("hard link by descriptor", func(s *stage) error {
			fd, err := unix.Open(inShown("file")(s), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			name := s.Writable + "/alias2"
			if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
				return err
			}
			return unix.Unlink(name)
		}),
		crossing("move of a read-only file into a writable directory", func(s *stage) error {
			from, to := inShown("file")(s), s.Writable+"/moved"
			if err := unix.Rename(from, to); err != nil {
				return err
			}
			return unix.Rename(to, from)
		}),
		{name: "swap of a read-only and a writable file", try: swapFiles, held: refused(unix.EXDEV)},
		{name: "write at the second place of a directory", try: func(s *stage) error { return open(s.second("file"), unix.O_WRONLY) }, held: refused(unix.EROFS)},
		{name: "writable directory at the second place", try: func(s *stage) error { return make1(s.second("writable")) }, held: refused(unix.EROFS)},
		{name: "masked file at the second place", try: func(s *stage) error { return s.readMark(s.second("hidden")) }, held: refused(unix.EACCES)},
		{name: "replaced /etc/passwd", try: replacePasswd, held: refused(unix.EBUSY, unix.EROFS, unix.EXDEV), control: apart},
		{name: "private tmpfs above its faces", try: aboveFaces, held: refused(errUnharmed), control: nowhere, why: "the host's /tmp has nothing above it but the root"},
		{
			name: "move of a masked file's mask", try: func(s *stage) error { return unix.Rename(inShown("hidden")(s), inShown("hidden2")(s)) }, held: refused(unix.EBUSY, unix.EROFS),
			control: nowhere, why: "outside it would lay bare the stage; mount points are tried in \"replaced /etc/passwd\"",
		},
	}
}

// second is the name of something shown at its second place, which on the host is the first.
func (s *stage) second(name string) string {
	if s.Inside {
		return filepath.Join(s.Alias, name)
	}
	return filepath.Join(s.Shown, name)
}

func upFromWritable(s *stage) error {
	fd, err := unix.Open(s.Writable, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	file, err := unix.Openat(fd, "../file", unix.O_WRONLY, 0)
	if err == nil {
		unix.Close(file)
	}
	return err
}

func linkAndRemove(old, name string) error {
	if err := unix.Link(old, name); err != nil {
		return err
	}
	return unix.Unlink(name)
}

func swapFiles(s *stage) error {
	mine := s.Writable + "/mine"
	fd, err := unix.Open(mine, unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	unix.Close(fd)
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, mine, unix.AT_FDCWD, inShown("file")(s), unix.RENAME_EXCHANGE)
	}
	if err := swap(); err != nil {
		return err
	}
	return swap() // back
}

// replacePasswd puts another file in the place of one that is mounted. The control mounts one itself.
func replacePasswd(s *stage) error {
	victim, mine := "/etc/passwd", "/tmp/passwd"
	if !s.Inside {
		if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""); err != nil {
			return err
		}
		victim = "/tmp/victim"
		if err := write0(victim); err != nil {
			return err
		}
	}
	if err := write0(mine); err != nil {
		return err
	}
	return unix.Rename(mine, victim)
}

func write0(name string) error {
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// aboveFaces looks from each face of the private tmpfs for the directory that all of them lie in.
func aboveFaces(*stage) error {
	for _, face := range []string{"/tmp", "/var/tmp", "/home", "/run", "/dev/shm"} {
		fd, err := unix.Open(face, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		var up, root unix.Stat_t
		if err := unix.Fstatat(fd, "..", &up, 0); err != nil {
			return err
		}
		if err := unix.Stat(filepath.Dir(face), &root); err != nil {
			return err
		}
		if up.Ino != root.Ino || up.Dev != root.Dev {
			return nil
		}
		if open("/.scratch", unix.O_PATH) == nil {
			return nil
		}
	}
	return errUnharmed
}
