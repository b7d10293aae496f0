package sandbox

import "os"

// namespaceHint says on one line what is most likely to keep a process from making user namespaces, by
// the settings that can. read is os.ReadFile. [Checks] gives the long form.
func namespaceHint(read func(string) ([]byte, error)) string {
	h := host{read: read, privileged: os.Geteuid() == 0}
	o := h.namespaceObstacle(nil)
	switch {
	case h.appArmorRestricts():
		return o.cause + "; airlock doctor prints one for this binary"
	case o.mend == "":
		return o.cause + "; airlock doctor looks closer"
	}
	return o.cause + "; allow them with: " + o.mend
}
