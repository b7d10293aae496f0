package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"airlock/overlay"
)

// elsewhere is the hint for a workspace without a history: of a directory above it or below it some runs may be kept,
// or of one of its name that isn't there any more, since the workspace was moved. "" if there is none.
func elsewhere(ctx context.Context, state, dir string) string {
	all, err := overlay.Clean(ctx, overlay.CleanOptions{StateDir: state, History: true, DryRun: true})
	if err != nil {
		return "" // a hint is not worth an error
	}
	var hints []string
	for _, one := range all {
		if one.Workspace == "" || one.Workspace == dir || one.Runs == 0 {
			continue
		}
		switch {
		case one.Gone && filepath.Base(one.Workspace) == filepath.Base(dir):
			hints = append(hints, "runs landed in "+tomlText(one.Workspace)+", which isn't there any more; if it was moved here, what they changed can be taken back only where it was")
		case !one.Gone && (beneath(one.Workspace, dir) || beneath(dir, one.Workspace)):
			hints = append(hints, "runs landed in "+tomlText(one.Workspace)+": name it with --workspace")
		}
	}
	slices.Sort(hints)
	return strings.Join(hints[:min(len(hints), 3)], "; ")
}

// beneath reports whether path lies in dir; both are clean and absolute.
func beneath(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
