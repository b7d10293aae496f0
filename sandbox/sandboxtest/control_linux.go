package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// control makes the attempt where it should get through.
func (s *stage) control(p probe) attempt {
	if p.control == apart {
		return s.apart(p.name)
	}
	return s.process(p.name, nil)
}

// apart makes an attempt in new namespaces of each kind, with every capability over them: what it mounts, names
// or kills there ends with it.
func (s *stage) apart(name string) attempt {
	return s.process(name, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "apart")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
				unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		}
		for c := range uintptr(unix.CAP_LAST_CAP + 1) {
			cmd.SysProcAttr.AmbientCaps = append(cmd.SysProcAttr.AmbientCaps, c)
		}
	})
}

// settleApart makes the namespaces usable: no mount gets out of them, and /proc shows their processes.
func settleApart() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
