//go:build !linux

// Command posix compares what programs come to in a run with what they come to without airlock, which takes a
// Linux host.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "runs are isolated on Linux only, so there is nothing to compare here")
	os.Exit(1)
}
