package overlay

import (
	"strings"

	"airlock/internal/gitconfig"
	"airlock/internal/pattern"
)

var objectName = pattern.Lazy(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// directRef returns the object that the text of a loose ref names, "" where it is a symbolic ref or none.
func directRef(text string) string {
	if text = strings.TrimSpace(text); objectName().MatchString(text) {
		return text
	}
	return ""
}

// symbolicRef reads the content of HEAD, or of a ref, that names another ref.
func symbolicRef(text string) (ref string, ok bool) {
	ref, ok = strings.CutPrefix(text, "ref:")
	ref = strings.TrimSpace(ref)
	return ref, ok && strings.HasPrefix(ref, "refs/") && checkPath(ref) == nil
}

// packedRefs reads what refs lead to from the text of a packed-refs file: "OBJECT NAME" a line, beside comments
// and what tags lead to. Other lines, on which git gives up, are passed over; whole is that there are none.
func packedRefs(text string) (refs map[string]string, whole bool) {
	refs, whole = map[string]string{}, text == "" || strings.HasSuffix(text, "\n")
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		object, name, _ := strings.Cut(line, " ")
		switch {
		case objectName().MatchString(object) && gitconfig.ValidRef(name):
			refs[name] = object
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "^") && objectName().MatchString(line[1:]):
		default:
			whole = false
		}
	}
	return refs, whole
}
