package tools

import (
	"fmt"
	"slices"
	"time"

	"airlock/internal/units"
)

// Limits is the section [limits] of the configuration: what one run may use, and how much of it a
// client sees. Every field has a default that is not its zero value; start from [DefaultLimits].
type Limits struct {
	// Timeout is how long a run may take if its call names no time; MaxTimeout is the longest time
	// that a call may name. Both count from the start of the run, not from its place in the queue.
	Timeout    units.Duration `toml:"timeout"`
	MaxTimeout units.Duration `toml:"max_timeout"`
	// Wait is how long a call waits for its run before it answers without it.
	Wait units.Duration `toml:"wait"`
	// Processes counts processes and threads at once.
	Processes int `toml:"processes"`
	// Memory and Disk are bytes that a run may hold, and write.
	Memory units.Size `toml:"memory"`
	Disk   units.Size `toml:"disk"`
	// Output is how many bytes of a run's output a result shows; see [Output].
	Output units.Size `toml:"output"`
	// Runs is how many runs of one conversation go on at once, where they may overlap at all.
	Runs int `toml:"runs"`
	// Files is how many files one process may have open.
	Files int `toml:"files"`
	// CPU is how many cores a run may use; 0 is all of them.
	CPU float64 `toml:"cpu"`
	// Enforce is "best" or "strict": whether a limit that nothing on this host can hold is only
	// watched, or refuses the run.
	Enforce string `toml:"enforce"`
}

// DefaultLimits returns the limits that hold where the configuration says nothing.
func DefaultLimits() Limits {
	return Limits{
		Timeout:    units.Duration(2 * time.Minute),
		MaxTimeout: units.Duration(time.Hour),
		Wait:       units.Duration(45 * time.Second),
		Processes:  256,
		Memory:     4 << 30,
		Disk:       4 << 30,
		Output:     32 << 10,
		Runs:       8,
		Files:      4096,
		CPU:        0,
		Enforce:    "best",
	}
}

// Bounds of what a configuration may say. A smaller sandbox could not even start a shell, and a
// larger output could not be sent in one message.
const (
	minTimeout   = units.Duration(time.Second)
	maxTimeout   = units.Duration(7 * 24 * time.Hour)
	minProcesses = 4
	minMemory    = units.Size(16 << 20)
	minDisk      = units.Size(1 << 20)
	minOutput    = units.Size(1 << 10)
	maxOutput    = units.Size(16 << 20)
	minFiles     = 16
)

// Validate reports the first value that is out of range, by its key.
func (l Limits) Validate() error {
	switch {
	case l.Timeout < minTimeout || l.Timeout > maxTimeout:
		return fmt.Errorf("limits.timeout: %s is not between %s and %s", l.Timeout, minTimeout, maxTimeout)
	case l.MaxTimeout < minTimeout || l.MaxTimeout > maxTimeout:
		return fmt.Errorf("limits.max_timeout: %s is not between %s and %s", l.MaxTimeout, minTimeout, maxTimeout)
	case l.Timeout > l.MaxTimeout:
		return fmt.Errorf("limits.timeout: %s is more than limits.max_timeout, which is %s", l.Timeout, l.MaxTimeout)
	case l.Wait < minTimeout:
		return fmt.Errorf("limits.wait: %s is less than %s", l.Wait, minTimeout)
	case l.Processes < minProcesses:
		return fmt.Errorf("limits.processes: %d is less than %d", l.Processes, minProcesses)
	case l.Memory < minMemory:
		return fmt.Errorf("limits.memory: %s is less than %s", l.Memory, minMemory)
	case l.Disk < minDisk:
		return fmt.Errorf("limits.disk: %s is less than %s", l.Disk, minDisk)
	case l.Output < minOutput || l.Output > maxOutput:
		return fmt.Errorf("limits.output: %s is not between %s and %s", l.Output, minOutput, maxOutput)
	case l.Runs < 1:
		return fmt.Errorf("limits.runs: %d is less than 1", l.Runs)
	case l.Files < minFiles:
		return fmt.Errorf("limits.files: %d is less than %d", l.Files, minFiles)
	case !(l.CPU >= 0): // also refuses NaN, which TOML can spell
		return fmt.Errorf("limits.cpu: %v is not a number of cores; 0 is all of them", l.CPU)
	case l.Enforce != "best" && l.Enforce != "strict":
		return fmt.Errorf("limits.enforce: %q is not one of best, strict", l.Enforce)
	}
	return nil
}

// Config is the section [tools] of the configuration. Its zero value offers every tool.
type Config struct {
	// Disable names tools that are not offered at all.
	Disable []string `toml:"disable"`
}

// Defaults returns the section as it is where the configuration says nothing.
func Defaults() Config { return Config{Disable: []string{}} }

// Names lists the tools of this version, in the order in which a client sees them.
func Names() []string {
	return []string{"run_shell", "run_python", "package_install", "python_env"}
}

func (c Config) disables(name string) bool { return slices.Contains(c.Disable, name) }

// Validate reports the first name in Disable that is no tool.
func (c Config) Validate() error {
	all := Names()
	for _, name := range c.Disable {
		if !slices.Contains(all, name) {
			return fmt.Errorf("tools.disable: %q is not a tool; there are %s", name, list(all))
		}
	}
	return nil
}
