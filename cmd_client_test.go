package main

import (
	"bytes"
	"strings"
	"testing"
)

// A block with U+FFFD in the place of a byte would name another directory.
func TestClientOfAPathThatIsNotUTF8(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), app{stdout: &stdout, stderr: &stderr}, []string{"client", "--workspace", "/w\xff", "zed"})
	if status != exitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), "is not UTF-8") {
		t.Errorf("status %d, %q, %q", status, stdout.String(), stderr.String())
	}
}
