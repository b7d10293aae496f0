package main

import "testing"

// What limits.enforce = "strict" would refuse, doctor must not call possible.
func TestRefusedByStrict(t *testing.T) {
	if err := refusedByStrict(map[string]string{"memory": "cgroup v2", "processes": "rlimit", "cpu": ""}); err != nil {
		t.Errorf("every limit that is set is held: %v", err)
	}
	err := refusedByStrict(map[string]string{"memory": "", "processes": "rlimit"})
	if want := `limits.enforce: is "strict", and nothing on this host holds limits.memory`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
