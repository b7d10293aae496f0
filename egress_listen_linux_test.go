package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"airlock/internal/mcpclient"
)

func init() { testPrograms["without-nftables"] = withoutNftables }

// withoutNftables executes a command on what looks like a kernel without nf_tables: a filter answers as one does when it is
// asked for a socket of netfilter's.
func withoutNftables() {
	const (
		load     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		unless   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give     = unix.BPF_RET | unix.BPF_K
		argument = 16 // offset of the first in struct seccomp_data, each of which has 8 bytes
	)
	filter := []unix.SockFilter{
		{Code: load, K: 0},
		{Code: unless, Jf: 5, K: unix.SYS_SOCKET},
		{Code: load, K: argument},
		{Code: unless, Jf: 3, K: unix.AF_NETLINK},
		{Code: load, K: argument + 2*8},
		{Code: unless, Jf: 1, K: unix.NETLINK_NETFILTER},
		{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	path, notFound := exec.LookPath(os.Args[1])
	if err == nil && notFound == nil {
		err = unix.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "without-nftables:", err, notFound)
	os.Exit(1)
}

// TestEgressClientsWithoutNftables has the same clients reach the same servers where connections are taken by listeners: what the
// kernel redirects on other hosts. What is not listed is refused at once here too, but nobody sees which port it was.
func TestEgressClientsWithoutNftables(t *testing.T) {
	servers := startEgressServers(t)
	for _, backend := range []string{"native", "bwrap"} {
		t.Run(backend, func(t *testing.T) {
			if err := egressHere(t, backend); err != nil { // or bubblewrap is not here at all
				lacksForEgress(t, err)
			}
			ws, home := t.TempDir(), t.TempDir()
			trap := startTrap(t)
			servers.fill(t, ws)
			config := writeIn(t, home, "config.toml", servers.config(backend, ""), 0o600)
			airlock := func(args ...string) *exec.Cmd {
				cmd := exec.Command("without-nftables", append([]string{"airlock"}, append(args, "--workspace", ws, "--config", config)...)...)
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state")}
				for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
					cmd.Env = append(cmd.Env, name+"="+trap.address)
				}
				return cmd
			}
			var log bytes.Buffer
			cmd := airlock("serve")
			cmd.Stderr = &log
			client, err := mcpclient.Start(t.Context(), cmd)
			if err != nil {
				t.Fatalf("%v\n%s", err, &log)
			}
			do := func(t *testing.T, command, want string, denied []string) {
				t.Helper()
				var result struct {
					Output  string
					Network struct{ Denied []string }
				}
				start := time.Now()
				answer, err := client.CallTool(t.Context(), "run_shell",
					map[string]any{"command": servers.command(command), "timeout_seconds": 600, "wait_seconds": 600}, nil)
				if err == nil {
					err = json.Unmarshal(answer.Structured, &result)
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, &log)
				}
				if !regexp.MustCompile(want).MatchString(result.Output) || !slices.Equal(result.Network.Denied, denied) {
					t.Errorf("no match for %q, or refused %q, want %q, in\n%s", want, result.Network.Denied, denied, result.Output)
				}
				t.Log(time.Since(start).Round(time.Millisecond))
			}
			for _, c := range egressClients {
				if !*everyClient && !slices.Contains(everywhere, c.name) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					do(t, unproxied+c.command, c.want, []string{"other.test"})
				})
			}
			t.Run("by the proxy", func(t *testing.T) {
				do(t, `curl -sS --cacert ca.pem https://web.test:$HTTPS/p; curl -sS --cacert ca.pem https://web.test:9/ || echo refused`,
					`hello by /p\n(.*\n)*refused`, []string{"web.test:9"})
			})
			t.Run("a port that the run has bound", func(t *testing.T) {
				port := fmt.Sprint(servers.ports["https"])
				bind := "/usr/bin/python3 -c \"import socket, subprocess, sys; s = socket.socket(); s.bind(('%s', " + port + ")); s.listen(); " +
					"print('bound', subprocess.call(['curl', '-sm5', 'https://web.test:" + port + "/']))\""
				do(t, unproxied+fmt.Sprintf(bind, "0.0.0.0"), `^bound [1-9]`, []string{"web.test:" + port})
				do(t, unproxied+strings.Replace(fmt.Sprintf(bind, "127.0.0.1"), "-sm5", "-ksm5", 1), `^hello by /\n\nbound 0|^hello by /\nbound 0`, nil)
			})
			if err := client.Close(); err != nil {
				t.Errorf("%v\n%s", err, &log)
			}
			said, err := airlock("doctor").Output()
			if err != nil || !strings.Contains(string(said), "connections are taken by listeners, since nf_tables can't be had (protocol not supported)") {
				t.Errorf("doctor: %v\n%s", err, said)
			}
			if !strings.Contains(string(said), "_proxy is set on this host, and not used") {
				t.Errorf("doctor does not speak of the host's proxy:\n%s", said)
			}
			trap.wantUnused(t)
		})
	}
}

// trap is a proxy that the host's variables name and that nobody may ask: network.upstream alone says what is asked.
type trap struct {
	address string
	asked   atomic.Int64
}

func startTrap(t *testing.T) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &trap{address: "http://" + l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.asked.Add(1)
			conn.Close()
		}
	}()
	return p
}

// wantUnused wants that nobody has asked it, and asks it itself as the control.
func (p *trap) wantUnused(t *testing.T) {
	t.Helper()
	if n := p.asked.Load(); n != 0 {
		t.Errorf("the host's proxy was asked %d times", n)
	}
	curl := exec.Command("curl", "-sm10", "http://web.test/")
	curl.Env = []string{"http_proxy=" + p.address}
	_ = curl.Run()
	if p.asked.Load() == 0 {
		t.Error("control: the host's proxy does not hear who asks it")
	}
}
