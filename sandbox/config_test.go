package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidate(t *testing.T) {
	for _, test := range []struct {
		edit func(*Config)
		want string
	}{
		{func(c *Config) { c.Backend = "x" }, `sandbox.backend: "x" is not one of auto, native, bwrap, direct`},
		{func(c *Config) { c.Read = []string{"data"} }, `sandbox.read: "data" is not an absolute path; write it from "/" on, or from "~/", which is your home directory`},
		{func(c *Config) { c.Read = []string{"/usr/.."} }, `sandbox.read: "/usr/.." is the whole host; name what runs need`},
		{func(c *Config) { c.Read = []string{"/proc/1"} }, `sandbox.read: "/proc/1" can't be shown; a run has its own /proc and /dev, and no /sys`},
		{func(c *Config) { c.Hide = []string{""} }, `sandbox.hide: "" is not a glob`},
		{func(c *Config) { c.PassEnv = []string{"A*B"} }, `sandbox.pass_env: "A*B" is not the name of a variable (a * may stand at its end)`},
		{func(c *Config) { c.PassEnv = []string{"*"} }, `sandbox.pass_env: "*" is not the name of a variable (a * may stand at its end)`},
		{func(c *Config) { c.Env = map[string]string{"1": ""} }, `sandbox.env: "1" is not the name of a variable`},
		{func(c *Config) { c.Env = map[string]string{"A": "\x00"} }, `sandbox.env: the value of A holds a NUL byte`},
		{func(c *Config) { c.Cache = "4 Gb" }, `sandbox.cache: "4 Gb" is not a size; write a whole number and a unit, as in "512MiB" or "4GiB"`},
		{func(c *Config) { c.Backend, c.Cache = "", "x" }, "sandbox.backend: \"\" is not one of auto, native, bwrap, direct\n" +
			`sandbox.cache: "x" is not a size; write a whole number and a unit, as in "512MiB" or "4GiB"`},
	} {
		c := Defaults()
		test.edit(&c)
		if err := c.Validate(); err == nil || err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
}

func TestConfigEnviron(t *testing.T) {
	c := Config{PassEnv: []string{"LANG", "LC_*"}, Env: map[string]string{"LC_ALL": "C", "X": "a=b"}}
	host := []string{"LANG=de", "LC_ALL=x", "LC_TIME=y", "LANGUAGE=z", "TOKEN=secret", "BASH_FUNC_f%%=() { :; }", "LC_%%=f", "=C:=x"}
	if diff := cmp.Diff([]string{"LANG=de", "LC_ALL=C", "LC_TIME=y", "X=a=b"}, c.Environ(host)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
