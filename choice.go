package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"airlock/sandbox"
)

// tryLimit is the longest that a server takes for trying one backend, before it answers its client.
const tryLimit = 2 * time.Second

// chooser gives what sandbox.backend = "auto" comes to on this host. It is found out when first asked for, once: by a
// sandbox that is built, or, where that was done since the host was started and nothing that it depends on has changed, by
// what is noted of it.
type chooser struct {
	file string // where it is noted
	try  func(context.Context, time.Duration) (sandbox.Choice, sandbox.Backend)
	host func() string // what it depends on

	once   sync.Once
	choice sandbox.Choice
	noted  bool // the choice was noted by an earlier process

	mu    sync.Mutex
	tried sandbox.Backend // the one that was tried, until it is taken; nil if there is none
}

func newChooser(state string) *chooser {
	return &chooser{
		file: filepath.Join(state, "backend.json"),
		try:  sandbox.ChooseOpen,
		host: describeIsolation,
	}
}

// note is what is written down of a choice. Only a name counts: whichever it is, a backend isolates a run or does not start it.
type note struct {
	Host    string `json:"host"`
	Backend string `json:"backend"`
}

// choose makes the choice.
func (c *chooser) choose() sandbox.Choice {
	c.once.Do(func() {
		host := c.host()
		if n, err := c.read(); err == nil && host != "" && n.Host == host && slices.Contains(sandbox.Isolating, n.Backend) {
			c.choice, c.noted = sandbox.Choice{Name: n.Backend, Why: "a sandbox was built with it since this host was started"}, true
			return
		}
		var b sandbox.Backend
		c.choice, b = c.try(context.Background(), tryLimit)
		c.write(host, c.choice)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tried = b
	})
	return c.choice
}

// open gives the backend that was chosen: the one that was tried, whose parts have started, or a new one.
func (c *chooser) open() (sandbox.Backend, error) {
	choice := c.choose()
	if err := choice.Err(); err != nil {
		return nil, err
	}
	if b := c.take(); b != nil {
		return b, nil
	}
	return sandbox.Open(choice.Name)
}

func (c *chooser) take() sandbox.Backend {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.tried
	c.tried = nil
	return b
}

// close closes the backend that was tried, if nobody has taken it.
func (c *chooser) close() error {
	if b := c.take(); b != nil {
		return b.Close()
	}
	return nil
}

// verify finds out whether a choice that was noted still holds, and notes what does. The error says that it does not.
func (c *chooser) verify(ctx context.Context) error {
	if !c.noted {
		return nil
	}
	now, b := c.try(ctx, tryLimit)
	if b != nil {
		_ = b.Close() // it ran nothing that could be left
	}
	if ctx.Err() != nil || now.Name == c.choice.Name {
		return nil
	}
	c.write(c.host(), now)
	return fmt.Errorf("the backend %s does not work on this host any more: %w", c.choice.Name, errorOf(now, c.choice.Name))
}

// verifyTime is how long after its start a server verifies a choice that was noted: when nobody waits for it any more.
const verifyTime = 5 * time.Second

// verifyLater verifies once the server has been there for a while, and warns if the choice does not hold. stop ends that,
// or waits for its end.
func (c *chooser) verifyLater(warn func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-time.After(verifyTime):
			if err := c.verify(ctx); err != nil {
				warn(err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// errorOf is why a choice does not have a backend.
func errorOf(c sandbox.Choice, name string) error {
	for _, r := range c.Refused {
		if r.Name == name {
			return r.Err
		}
	}
	return fmt.Errorf("%s does", c.Name)
}

func (c *chooser) read() (n note, err error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return n, err
	}
	return n, json.Unmarshal(text, &n)
}

// write notes a choice of a backend that works without a but, and forgets any other. That it can't be noted costs the next
// process its time, and no more.
func (c *chooser) write(host string, choice sandbox.Choice) {
	if choice.Name == "" || len(choice.Refused) > 0 || host == "" {
		_ = os.Remove(c.file)
		return
	}
	text, err := json.Marshal(note{host, choice.Name})
	if err == nil {
		_ = replaceFile(c.file, text)
	}
}

// describeIsolation is a fingerprint of what decides whether a sandbox can be built: the start of the host, this binary,
// who executes it and in which namespaces and confinement, and the settings of the kernel. It is "" where it can't be had.
func describeIsolation() string {
	var b strings.Builder
	for _, file := range []string{
		"/proc/sys/kernel/random/boot_id", "/proc/self/attr/current", "/proc/self/setgroups", "/proc/sys/kernel/unprivileged_userns_clone",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_mnt_namespaces",
		"/proc/sys/user/max_net_namespaces", "/proc/sys/user/max_pid_namespaces", "/proc/sys/vm/memfd_noexec",
	} {
		text, err := os.ReadFile(file)
		if err != nil && file == "/proc/sys/kernel/random/boot_id" {
			return ""
		}
		fmt.Fprintf(&b, "%s %q\n", file, text)
	}
	for _, ns := range []string{"user", "mnt", "pid", "net"} {
		target, _ := os.Readlink("/proc/self/ns/" + ns)
		fmt.Fprintf(&b, "%s %q\n", ns, target)
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if key, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"CapEff", "CapBnd", "NoNewPrivs", "Seccomp"}, key) {
			b.WriteString(line)
		}
	}
	exe, err := os.Stat("/proc/self/exe")
	if err != nil {
		return ""
	}
	fmt.Fprintf(&b, "%d %d %d %d %s %s\n", os.Geteuid(), os.Getegid(), exe.Size(), exe.ModTime().UnixNano(), os.TempDir(), runtime.Version())
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:])
}
