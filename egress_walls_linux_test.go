package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/tools"
)

// wallProbe talks to itself on the run's loopback and then tries every way out. Each try ends by itself, long before
// timeout would end it: a run never hangs at its walls.
const wallProbe = `
/usr/bin/python3 -m http.server $INSIDE >/dev/null 2>&1 &
until curl -sf --noproxy '*' 127.0.0.1:$INSIDE/mark >/dev/null; do sleep 0.05; done
# With the variables as they are: loopback is excepted in them.
curl -s http://localhost:$INSIDE/mark http://127.0.0.1:$INSIDE/mark
/usr/bin/python3 -c "
import urllib.request
for host in 'localhost', '127.0.0.1':
    print(urllib.request.urlopen('http://' + host + ':$INSIDE/mark').read().decode(), end='')"
NODE_USE_ENV_PROXY=1 node -e "(async () => { for (const host of ['localhost', '127.0.0.1'])
	process.stdout.write(await (await fetch('http://' + host + ':$INSIDE/mark')).text()) })()"
try() { timeout 60 "$@" >/dev/null 2>&1; status=$?; case $status in 0) echo "REACHED: $*";; 124) echo "HUNG: $*";; *) echo no;; esac; }
try curl -s --noproxy '*' http://127.0.0.1:$HOST/
try curl -s --noproxy '*' http://$HOSTADDR:$HOST/
try getent hosts x.test
try curl -s --noproxy '*' https://x.test/
try curl -s -6 --noproxy '*' 'https://[2606:4700::1111]/'
try curl -s --noproxy '*' https://1.1.1.1/
try /usr/bin/python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(('8.8.8.8', 53))
s.send(bytes(12) + b'\0\0\1\0\1')
s.recv(100)"
`

// TestEgressWalls has a run talk to itself and to nobody else, with the network closed and with a list of hosts, and with
// a state directory whose path is longer than a socket's can be.
func TestEgressWalls(t *testing.T) {
	for _, program := range []string{"curl", "node", "/usr/bin/python3"} {
		if _, err := exec.LookPath(program); err != nil {
			lacksForEgress(t, err)
		}
	}
	outside, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	go func() {
		for {
			conn, err := outside.Accept()
			if err != nil {
				return
			}
			t.Errorf("%v reached the host", conn.RemoteAddr())
			conn.Close()
		}
	}()
	host := fmt.Sprint(outside.Addr().(*net.TCPAddr).Port)
	address := hostAddress(t)
	inside := fmt.Sprint(bindable(t, "127.0.0.1", 0))

	deep := filepath.Join(t.TempDir(), strings.Repeat("deep", 40))
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", deep) // of the subtests' directories
	for _, tt := range []struct {
		config string
		denied []string
	}{
		{"", nil}, // no network: what is not there is not refused
		{"[network]\nmode = \"allowlist\"\nallow = [\"a.test\"]\n", []string{address + ":" + host, "x.test", "[2606:4700::1111]:443", "1.1.1.1:443"}},
	} {
		t.Run(fmt.Sprint("network ", tt.config != ""), func(t *testing.T) {
			if tt.config != "" {
				if err := egressHere(t, "native"); err != nil {
					lacksForEgress(t, err)
				}
			}
			runner, _, ws := configuredRunner(t, tt.config, func(*settings) {})
			writeIn(t, ws, "mark", "self\n", 0o644)
			ended := make(chan struct{})
			go func() { // nor does anyone reach the run
				for {
					if conn, err := net.Dial("tcp", "127.0.0.1:"+inside); err == nil {
						t.Error("the host reached a port of the run")
						conn.Close()
					}
					select {
					case <-ended:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			}()
			command := strings.NewReplacer("$INSIDE", inside, "$HOSTADDR", address, "$HOST", host).Replace(wallProbe)
			result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: command, Timeout: 10 * time.Minute}, nil)
			close(ended)
			want := strings.Repeat("self\n", 6) + strings.Repeat("no\n", 7)
			if err != nil || result.Output != want {
				t.Fatalf("%v, %s", err, result.Text())
			}
			if !slices.Equal(result.Network.Denied, tt.denied) {
				t.Errorf("refused %q, want %q", result.Network.Denied, tt.denied)
			}
		})
	}
}

// hostAddress is an IPv4 address of this host that is not loopback.
func hostAddress(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return ip.IP.String()
		}
	}
	t.Skip("this host has no address but loopback's")
	return ""
}
