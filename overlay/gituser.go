package overlay

// GitUser is the configuration of git that holds in every repository of the person, from outside of the
// workspace. What it sends git to is protected where it lies in the workspace.
type GitUser struct {
	Home  string   // what "~/" stands for
	Files []string // absolute; they need not exist
}
