package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

func versionCommand() command {
	c := command{
		name:    "version",
		summary: "the version of this program and how it was built",
		help:    "Prints the version, the Go version and the platform.\n\n    airlock version\n",
	}
	c.run = func(_ context.Context, a app, args []string) int {
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		if status, done := parseFlags(a, c, flags, args); done {
			return status
		}
		if status, done := noArguments(a, c, flags); done {
			return status
		}
		fmt.Fprintf(a.stdout, "airlock %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return exitOK
	}
	return c
}

// version is the module's version, or the commit that the program was built from, or "devel".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision + dirty
}
