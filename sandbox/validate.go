package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// validate finds what no backend could make a run of. It looks at the values only, never at the host.
func (s Spec) validate() error {
	if err := s.check(); err != nil {
		return &SetupError{Op: "check the run's description", Err: err}
	}
	return nil
}

func (s Spec) check() error {
	for _, r := range s.ID {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-", r) {
			return fmt.Errorf("id %q holds more than letters, digits and '-'", s.ID)
		}
	}
	if s.ID == "" || len(s.ID) > 64 {
		return fmt.Errorf("id %q is empty or longer than 64 bytes", s.ID)
	}
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("argv is empty")
	}
	for _, text := range [][]string{s.Argv, s.Env} {
		for _, t := range text {
			if strings.ContainsRune(t, 0) {
				return errors.New("an argument or environment variable holds a NUL byte")
			}
		}
	}
	for _, e := range s.Env {
		if strings.IndexByte(e, '=') < 1 {
			return fmt.Errorf("env holds %q, which is not KEY=VALUE", e)
		}
	}
	if s.UID < 0 || s.GID < 0 {
		return errors.New("uid or gid is negative")
	}
	if len(s.Hostname) > 64 || strings.ContainsRune(s.Hostname, 0) {
		return fmt.Errorf("hostname %q is longer than 64 bytes or holds a NUL byte", s.Hostname)
	}
	if err := s.validateEgress(); err != nil {
		return err
	}
	if err := checkPath("dir", s.Dir); err != nil {
		return err
	}
	if s.Home != "" {
		if err := checkPath("home", s.Home); err != nil {
			return err
		}
	}
	for _, m := range s.Mounts {
		if err := m.check(); err != nil {
			return err
		}
	}
	return nil
}

func (m Mount) check() error {
	if err := checkPath("mounts: target", m.Target); err != nil {
		return err
	}
	if m.Target == "/" {
		return errors.New("mounts: target is the root")
	}
	for _, own := range []string{"/proc", "/dev"} {
		if under(m.Target, own) && !strings.HasPrefix(m.Target, "/dev/shm/") {
			return fmt.Errorf("mounts: target %q lies in %s, which is the sandbox's own", m.Target, own)
		}
	}
	switch m.Kind {
	case MountBind:
		return checkPath("mounts: source", m.Source)
	case MountOverlay:
		layers := [][2]string{{"source", m.Source}}
		if m.Upper != "" || m.Work != "" || m.Mask == "" {
			layers = append(layers, [][2]string{{"upper", m.Upper}, {"work", m.Work}}...)
		}
		if m.Mask != "" {
			layers = append(layers, [2]string{"mask", m.Mask})
		}
		for _, p := range layers {
			if err := checkPath("mounts: "+p[0], p[1]); err != nil {
				return err
			}
		}
		return nil
	case MountSymlink:
		if m.Source == "" || strings.ContainsRune(m.Source, 0) {
			return fmt.Errorf("mounts: the link %q has no text or a NUL byte in it", m.Target)
		}
		return nil
	case MountFile, MountMask:
		return nil
	}
	return fmt.Errorf("mounts: kind %q is not known", m.Kind)
}

func checkPath(what, p string) error {
	if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsRune(p, 0) {
		return fmt.Errorf("%s is %q, not a clean absolute path", what, p)
	}
	return nil
}

// under is true if p is dir or lies below it. Both are clean absolute paths.
func under(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}
