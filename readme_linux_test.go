package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestREADMESession plays the session by hand that the README shows, with a server.
func TestREADMESession(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := sandboxHere(); err != nil {
		if slices.Contains(strings.Split(*require, ","), "userns") {
			t.Fatal("-require=userns: ", err)
		}
		t.Skip(err)
	}
	s := startServer(t)
	typed, came := 0, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if request, ok := strings.CutPrefix(line, "    > "); ok {
			s.send(request)
			typed++
		}
		if shown, ok := strings.CutPrefix(line, "    < "); ok {
			got, err := s.lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(shown), "…", ".*") + "\n$"
			if !regexp.MustCompile(pattern).MatchString(got) {
				t.Errorf("the README shows\n%s\nand the server says\n%s", shown, got)
			}
			came++
		}
	}
	if typed < 6 || came < 5 {
		t.Errorf("the README shows %d messages and %d answers", typed, came)
	}
	s.in.Close()
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestREADMESettingsRun has a run with each configuration that the README shows, in a home where nothing is yet.
func TestREADMESettingsRun(t *testing.T) {
	if err := sandboxHere(); err != nil {
		if slices.Contains(strings.Split(*require, ","), "userns") {
			t.Fatal("-require=userns: ", err)
		}
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range readmeSettings(t) {
		root := t.TempDir()
		home, ws, file := filepath.Join(root, "home"), filepath.Join(root, "ws"), filepath.Join(root, "config.toml")
		if err := errors.Join(os.Mkdir(home, 0o755), os.Mkdir(ws, 0o755), os.WriteFile(file, []byte(block), 0o600)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Cmd{
			Path: self, Args: []string{"airlock", "run", "--config", file, "--", "touch", "landed"}, Dir: ws,
			Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home},
		}
		said, err := cmd.CombinedOutput()
		if _, landed := os.Stat(filepath.Join(ws, "landed")); err != nil || landed != nil {
			t.Errorf("%v, %v:\n%s\nwith\n%s", err, landed, said, block)
		}
	}
}
