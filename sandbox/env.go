package sandbox

import "strings"

// getenv returns the last value of a variable in a list of KEY=VALUE, as a shell takes it.
func getenv(env []string, key string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, key+"="); ok {
			value = v
		}
	}
	return value
}
