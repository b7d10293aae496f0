package tools

import (
	"math"
	"testing"
	"time"

	"airlock/internal/units"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := DefaultLimits().Validate(); err != nil {
		t.Error(err)
	}
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	if err := (Config{Disable: Names()}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestLimitsOutOfRange(t *testing.T) {
	for want, change := range map[string]func(*Limits){
		`limits.timeout: 0s is not between 1s and 168h`:                   func(l *Limits) { l.Timeout = 0 },
		`limits.timeout: 2h is more than limits.max_timeout, which is 1h`: func(l *Limits) { l.Timeout = units.Duration(2 * time.Hour) },
		`limits.max_timeout: 169h is not between 1s and 168h`:             func(l *Limits) { l.MaxTimeout = units.Duration(169 * time.Hour) },
		`limits.wait: 0s is less than 1s`:                                 func(l *Limits) { l.Wait = 0 },
		`limits.processes: 0 is less than 4`:                              func(l *Limits) { l.Processes = 0 },
		`limits.memory: 100 is less than 16MiB`:                           func(l *Limits) { l.Memory = 100 },
		`limits.disk: -1 is less than 1MiB`:                               func(l *Limits) { l.Disk = -1 },
		`limits.output: 1000 is not between 1KiB and 16MiB`:               func(l *Limits) { l.Output = 1000 },
		`limits.output: 1GiB is not between 1KiB and 16MiB`:               func(l *Limits) { l.Output = 1 << 30 },
		`limits.runs: 0 is less than 1`:                                   func(l *Limits) { l.Runs = 0 },
		`limits.files: 3 is less than 16`:                                 func(l *Limits) { l.Files = 3 },
		`limits.cpu: -1 is not a number of cores; 0 is all of them`:       func(l *Limits) { l.CPU = -1 },
		`limits.cpu: NaN is not a number of cores; 0 is all of them`:      func(l *Limits) { l.CPU = math.NaN() },
		`limits.enforce: "always" is not one of best, strict`:             func(l *Limits) { l.Enforce = "always" },
	} {
		l := DefaultLimits()
		change(&l)
		if err := l.Validate(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestDisableNamesTools(t *testing.T) {
	err := Config{Disable: []string{"run_shell", "run_perl"}}.Validate()
	if want := `tools.disable: "run_perl" is not a tool; there are run_shell, run_python, package_install, python_env`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
