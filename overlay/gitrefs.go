package overlay

import (
	"regexp"
	"strings"

	"airlock/internal/gitconfig"
)

var objectName = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// directRef returns the object that the text of a loose ref names, "" where it is a symbolic ref or none.
func directRef(text string) string {
	if text = strings.TrimSpace(text); objectName.MatchString(text) {
		return text
	}
	return ""
}

// packedTips reads what refs lead to from the text of a packed-refs file. Lines that git would not have written are passed over.
func packedTips(text string) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(text) {
		object, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if found && objectName.MatchString(object) && gitconfig.ValidRef(name) {
			refs[name] = object
		}
	}
	return refs
}
