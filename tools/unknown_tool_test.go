package tools

import "testing"

// A tool that is disabled is said to be, and is not what was meant.
func TestUnknownTool(t *testing.T) {
	for _, tt := range []struct {
		disable    []string
		name, want string
	}{
		{nil, "run_shel", "run_shel: unknown tool; did you mean run_shell? There are run_shell, run_python, package_install, python_env"},
		{nil, "read", "read: unknown tool; there are run_shell, run_python, package_install, python_env"},
		{[]string{"run_python", "package_install"}, "run_python", "run_python is disabled (tools.disable)"},
		{[]string{"run_python", "package_install"}, "package_instal", "package_instal: unknown tool; there are run_shell, python_env"},
		{Names(), "bash", "bash: unknown tool; all are disabled (tools.disable)"},
	} {
		s := Server{opts: Options{Tools: Config{Disable: tt.disable}}}
		if got := s.unknownTool(tt.name); got != tt.want {
			t.Errorf("%s without %v: %s, want %s", tt.name, tt.disable, got, tt.want)
		}
	}
}
