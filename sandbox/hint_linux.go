package sandbox

import "strings"

// namespaceHint says what is most likely to keep a process from making user namespaces, by the settings
// that can. read is os.ReadFile.
func namespaceHint(read func(string) ([]byte, error)) string {
	setting := func(name string) string {
		b, err := read("/proc/sys/" + name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	switch {
	case setting("user/max_user_namespaces") == "0":
		return "user.max_user_namespaces is 0; allow them with: sudo sysctl user.max_user_namespaces=15000"
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "kernel.unprivileged_userns_clone is 0; allow them with: sudo sysctl kernel.unprivileged_userns_clone=1"
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor restricts user namespaces to programs with a profile; airlock doctor prints one for this binary (or, for all programs: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
	}
	return "a container runtime's seccomp profile may refuse them (Docker: --security-opt seccomp=unconfined), or user.max_user_namespaces is used up; airlock doctor looks closer"
}
