package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Whoever is asked on the terminal may leave by Ctrl-C, and nothing has changed then.
func TestInterruptedQuestion(t *testing.T) {
	home := t.TempDir()
	master, slave := pseudoTerminal(t, 80)
	defer master.Close()
	cmd := exec.Command("airlock", "allow", "a.example")
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb"}
	cmd.Dir = home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	ended := make(chan struct{})
	defer func() { _ = cmd.Process.Kill(); <-ended }()
	go func() { _ = cmd.Wait(); close(ended) }()
	var seen bytes.Buffer
	b := make([]byte, 4096)
	for !bytes.Contains(seen.Bytes(), []byte("Type yes: ")) {
		n, err := master.Read(b)
		if seen.Write(b[:n]); err != nil {
			t.Fatalf("%v after %q", err, &seen)
		}
	}
	if _, err := master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on after Ctrl-C")
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGINT {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
	if _, err := os.Stat(home + "/.config/airlock/config.toml"); err == nil {
		t.Error("the network was opened")
	}
}
