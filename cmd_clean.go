package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"airlock/envs"
	"airlock/internal/spelling"
	"airlock/internal/units"
	"airlock/overlay"
)

// What airlock clean removes, by the words that its command line takes.
const (
	cleanUndo   = "undo"
	cleanCache  = "cache"
	cleanLeft   = "left"
	cleanOutput = "output"
	cleanEnvs   = "envs"
)

var cleanKinds = []string{cleanUndo, cleanCache, cleanLeft, cleanOutput, cleanEnvs}

// cleanYoung is how old packages must be that no environment names: a younger one may be about to be installed.
const cleanYoung = time.Hour

func cleanCommand() command {
	c := command{
		name:    "clean",
		args:    "[flags] [WHAT...]",
		summary: "free the disk that airlock holds for a workspace, or for all",
		help: `Removes what airlock keeps, and says what that was and how much; without WHAT, all of

    undo      what runs replaced in the workspace: they can't be taken back any more,
              airlock log still lists them
    cache     the ~/.cache of the workspace's runs; a run that needs it fills it again
    left      what is left of the workspace's runs where a server was killed
    output    long outputs of servers that were killed, of all workspaces
    envs      packages that no environment has any more, of all workspaces; those of
              the last hour stay, since they may be about to be installed

It asks nothing; look with --dry-run first. What a server that lives uses, runs that
wait for review, environments, requests, grants and settings stay.

    airlock clean --dry-run --all
    airlock clean --workspace ~/project cache

Flags:
    --workspace DIR    the workspace, also one that is gone; without it the working directory
    --all              every workspace of yours, also those that are gone
    --dry-run          say what would go, and remove nothing
    --json             print it as JSON
`,
	}
	c.run = func(ctx context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		workspace := flags.String("workspace", "", "")
		all := flags.Bool("all", false, "")
		dryRun := flags.Bool("dry-run", false, "")
		asJSON := flags.Bool("json", false, "")
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if *all && *workspace != "" {
			return usageError(a, c, "--all and --workspace exclude each other")
		}
		kinds := flags.Args()
		for _, kind := range kinds {
			if !slices.Contains(cleanKinds, kind) {
				msg := fmt.Sprintf("there is no %s to remove", tomlText(kind))
				also := "; there"
				if near := spelling.Nearest(kind, cleanKinds); near != "" {
					also = fmt.Sprintf("; did you mean %q? There", near)
				}
				return usageError(a, c, msg+also+" are "+strings.Join(cleanKinds, ", "))
			}
		}
		p, err := enterPlaces(a.environ)
		dir := ""
		if err == nil && !*all {
			if dir, err = filepath.Abs(a.path(*workspace)); err == nil {
				dir = realPath(dir)
			}
		}
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		found, err := p.clean(ctx, dir, kinds, *dryRun)
		switch {
		case *asJSON:
			err = errors.Join(found.printJSON(a.stdout), err)
		case err == nil || len(found.Items)+len(found.Kept) > 0: // else whether there is something to remove is not known
			err = errors.Join(found.print(a.stdout), err)
		}
		if err != nil {
			printError(a.stderr, err)
			return exitFailed
		}
		return exitOK
	}
	return c
}

// cleaned is what airlock clean says.
type cleaned struct {
	DryRun bool          `json:"dry_run"`
	Items  []cleanedItem `json:"removed"` // or would be
	Kept   []cleanedItem `json:"kept"`    // what could not be, and runs that wait for review
	Bytes  int64         `json:"bytes"`
}

type cleanedItem struct {
	Kind      string `json:"kind"`
	Workspace string `json:"workspace,omitempty"`
	Gone      bool   `json:"workspace_gone,omitempty"`
	Bytes     int64  `json:"bytes"`
	What      string `json:"what"`
}

// clean removes what is kept of a workspace, or with "" of all of them. The error is about what could not be
// cleaned, beside the rest.
func (p places) clean(ctx context.Context, workspace string, kinds []string, dryRun bool) (cleaned, error) {
	found := cleaned{DryRun: dryRun, Items: []cleanedItem{}, Kept: []cleanedItem{}}
	wants := func(kind string) bool { return len(kinds) == 0 || slices.Contains(kinds, kind) }
	state := realPath(p.state)
	var failed []error
	if wants(cleanUndo) || wants(cleanLeft) {
		all, err := overlay.Clean(ctx, overlay.CleanOptions{
			StateDir: p.state, Workspace: workspace, History: wants(cleanUndo), Scratch: wants(cleanLeft), DryRun: dryRun,
		})
		failed = append(failed, err)
		for _, one := range all {
			found.workspace(one)
		}
	}
	if wants(cleanCache) {
		all, err := overlay.CleanCaches(ctx, overlay.CleanOptions{StateDir: state, Workspace: workspace, DryRun: dryRun})
		failed = append(failed, err)
		for _, one := range all {
			item := cleanedItem{cleanCache, overlay.Literal(one.Workspace), one.Gone, one.Bytes, "the cache of runs"}
			if one.InUse {
				item.What += ", which a run has now"
				found.Kept = append(found.Kept, item)
				continue
			}
			found.add(item)
		}
	}
	if wants(cleanOutput) {
		servers, bytes, err := (&outputs{state: p.state}).sweep(dryRun)
		failed = append(failed, err)
		if servers > 0 {
			found.add(cleanedItem{Kind: cleanOutput, Bytes: bytes, What: "long outputs of " + units.Counted(servers, "killed server")})
		}
	}
	if dir := filepath.Join(state, "envs"); wants(cleanEnvs) && exists(dir) {
		failed = append(failed, found.environments(ctx, dir))
	}
	return found, errors.Join(failed...)
}

func (f *cleaned) add(item cleanedItem) {
	f.Items = append(f.Items, item)
	f.Bytes += item.Bytes
}

func (f *cleaned) workspace(one overlay.Cleaned) {
	item := cleanedItem{Workspace: overlay.Literal(one.Workspace), Gone: one.Gone}
	if one.Workspace == "" {
		item.Workspace = "a workspace of an earlier version, whose path is not known"
	}
	with := func(kind string, bytes int64, what string) cleanedItem {
		item := item
		item.Kind, item.Bytes, item.What = kind, bytes, what
		return item
	}
	if one.Runs > 0 || one.History > 0 {
		what := "the undo of " + units.Counted(one.Runs, "run")
		if one.Runs == 0 {
			what = "the list of its runs"
		}
		f.add(with(cleanUndo, one.History, what))
	}
	if one.Servers > 0 {
		f.add(with(cleanLeft, one.Scratch, "what was left by "+units.Counted(one.Servers, "killed server")))
	}
	if one.Kept != "" {
		f.Kept = append(f.Kept, with(cleanUndo, 0, "everything: "+one.Kept))
	}
	for _, dir := range one.Foreign {
		f.Kept = append(f.Kept, with(cleanLeft, 0, overlay.Quote(dir.Path)+" is "+userName(dir.Owner)+"'s, who alone can clean it"))
	}
	if one.Waiting > 0 {
		f.Kept = append(f.Kept, with("review", 0, units.Counted(one.Waiting, "run")+" waiting for review (airlock land, airlock land --discard)"))
	}
}

func (f *cleaned) environments(ctx context.Context, dir string) error {
	store, err := envs.OpenStore(dir)
	if err != nil {
		return err
	}
	g, err := store.Collect(ctx, cleanYoung, f.DryRun)
	var parts []string
	for _, part := range []struct {
		n    int
		noun string
	}{{g.Left, "unfinished installation"}, {g.Layers, "layer"}, {g.Wheels, "wheel"}, {g.Trees, "tree"}} {
		if part.n > 0 {
			parts = append(parts, units.Counted(part.n, part.noun))
		}
	}
	if len(parts) > 0 {
		f.add(cleanedItem{Kind: cleanEnvs, Bytes: g.Bytes, What: "packages that no environment has: " + strings.Join(parts, ", ")})
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (f *cleaned) print(w io.Writer) error {
	var b strings.Builder
	did, total := "removed", "Freed"
	if f.DryRun {
		did, total = "would remove", "Would free"
	}
	width := len(did)
	line := func(did string, item cleanedItem) {
		size := ""
		if item.Bytes > 0 {
			size = units.Size(item.Bytes).Rounded()
		}
		fmt.Fprintf(&b, "%-*s  %-6s  %9s  %s", width, did, item.Kind, size, item.What)
		if item.Workspace != "" {
			fmt.Fprintf(&b, ", %s", item.Workspace)
		}
		if item.Gone {
			b.WriteString(" (gone)")
		}
		b.WriteByte('\n')
	}
	for _, item := range f.Items {
		line(did, item)
	}
	for _, item := range f.Kept {
		line("kept", item)
	}
	if len(f.Items) == 0 {
		b.WriteString("There is nothing to remove.\n")
	} else {
		fmt.Fprintf(&b, "%s %s.\n", total, units.Size(f.Bytes).Rounded())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *cleaned) printJSON(w io.Writer) error {
	return printJSON(w, f)
}
