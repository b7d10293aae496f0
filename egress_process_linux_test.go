package main

import (
	"bytes"
	"context"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serverProcess is a server that a test started. It ends with the test, also if that is killed.
type serverProcess struct {
	mu     sync.Mutex
	output bytes.Buffer
}

// Write implements io.Writer.
func (p *serverProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(b)
}

func (p *serverProcess) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// startServerProcess starts a server and waits until it says that it is ready. It is asked to end by a signal.
func startServerProcess(t *testing.T, ready string, end syscall.Signal, cmd *exec.Cmd) *serverProcess {
	p := &serverProcess{}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.WaitDelay = 20 * time.Second
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, ended := make(chan error), make(chan error, 1)
	stop, cancel := context.WithCancel(context.Background())
	go func() {
		runtime.LockOSThread() // whose end would be taken for the parent's
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
			<-stop.Done()
		}
	}()
	if err := <-started; err != nil {
		cancel()
		t.Error(err)
		return p
	}
	t.Cleanup(func() {
		defer cancel()
		_ = cmd.Process.Signal(end)
		late := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.said(), ready); time.Sleep(10 * time.Millisecond) {
		if len(ended) > 0 || time.Now().After(deadline) {
			t.Errorf("%s does not begin:\n%s", cmd.Path, p.said())
			break
		}
	}
	return p
}
