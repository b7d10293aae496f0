package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/sandbox"
	"airlock/tools"
)

var everyClient = flag.Bool("every-client", false, "play every client of TestEgressClients with every backend")

// unproxied makes the shell forget what airlock tells programs of its proxy: those of the table have no set-up.
const unproxied = "unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY; "

// egressClients are programs that know nothing of a proxy. Each reaches a server by a name that is allowed, and
// then asks for other.test, which is there too and is not allowed. docs/egress.md lists them.
var egressClients = []struct {
	name    string
	needs   []string
	command string
	want    string   // a pattern in the output
	denied  []string // other.test, unless said
}{
	{
		"curl, https",
		[]string{"curl"},
		`curl -sS --cacert ca.pem https://web.test:$HTTPS/curl; curl -sS https://other.test:$HTTPS/ || curl -sS https://web.test:9/ || echo refused`,
		`hello by /curl\n(.*\n)*refused`,
		[]string{"other.test", "web.test:9"},
	},
	{
		"node, fetch",
		[]string{"node"},
		`NODE_EXTRA_CA_CERTS=ca.pem node -e "(async () => { for (const host of ['web.test', 'other.test']) await fetch('https://'+host+':$HTTPS/node').then(r => r.text()).then(console.log, e => console.log('refused', e.cause.code)) })()"`,
		`hello by /node\n(.*\n)*refused ENOTFOUND`, nil,
	},
	{
		"Go, its own resolver", nil,
		`GODEBUG=netdns=go ./egress-client get ca.pem https://web.test:$HTTPS/go https://other.test:$HTTPS/`,
		`hello by /go\nrefused: .*no such host`, nil,
	},
	{
		"Go, the C library's resolver", nil,
		`GODEBUG=netdns=cgo ./egress-client get ca.pem https://web.test:$HTTPS/cgo https://other.test:$HTTPS/`,
		`hello by /cgo\nrefused: .*no such host`, nil,
	},
	{
		"Java, URL",
		[]string{"java", "javac"},
		`java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Get.java ca.pem https://web.test:$HTTPS/java https://other.test:$HTTPS/`,
		`hello by /java\n(.*\n)*refused: java.net.UnknownHostException`, nil,
	},
	{
		"python, urllib",
		[]string{"/usr/bin/python3"},
		`/usr/bin/python3 get.py https://web.test:$HTTPS/python https://other.test:$HTTPS/`,
		`hello by /python\n(.*\n)*refused: .*Name or service not known`, nil,
	},
	{
		"WebSocket",
		[]string{"/usr/bin/python3"},
		`/usr/bin/python3 socket_client.py web.test $HTTP; /usr/bin/python3 socket_client.py other.test $HTTP || echo refused`,
		`^100 frames\n(.*\n)*refused`, nil,
	},
	{
		"ssh",
		[]string{"ssh"},
		`$SSH -p $SSHPORT $LOGIN@git.test echo hello by ssh; $SSH -p $SSHPORT $LOGIN@other.test true || echo refused`,
		`hello by ssh\n(.*\n)*refused`, nil,
	},
	{
		"git, ssh://",
		[]string{"ssh", "git"},
		`export GIT_SSH_COMMAND="$SSH"; git clone -q ssh://$LOGIN@git.test:$SSHPORT$REPO /tmp/r && cat /tmp/r/file; git clone -q ssh://$LOGIN@other.test$REPO /tmp/s || echo refused`,
		`hello by git\n(.*\n)*refused`, nil,
	},
	{
		"git, host:path",
		[]string{"ssh", "git"},
		`export GIT_SSH_COMMAND="$SSH -p $SSHPORT"; git clone -q $LOGIN@git.test:$REPO /tmp/r && cat /tmp/r/file; git clone -q $LOGIN@other.test:$REPO /tmp/s || echo refused`,
		`hello by git\n(.*\n)*refused`, nil,
	},
	{
		"git, git://",
		[]string{"git"},
		`git clone -q git://git.test:$GIT/repo.git /tmp/r && cat /tmp/r/file; git clone -q git://other.test:$GIT/repo.git /tmp/s || echo refused`,
		`hello by git\n(.*\n)*refused`, nil,
	},
	{
		"psql, verify-full",
		[]string{"psql"},
		`psql "host=db.test $DB" -Atc "select 'hello by ' || count(*) from generate_series(1, 100000)"; psql "host=other.test $DB" || echo refused`,
		`hello by 100000\n(.*\n)*refused`, nil,
	},
	{
		// The same server by its address, and TLS asks it for another host: after PostgreSQL's request for TLS.
		"psql, another server name",
		[]string{"psql"},
		`at=$(getent ahostsv4 db.test | cut -d' ' -f1 | head -1); psql "host=db.test hostaddr=$at $DB" -Atc "select 'hello by ' || 1"; psql "host=other.test hostaddr=$at $DB sslmode=require sslsni=0" -Atc "select 'hello by ' || 2"
psql "host=other.test hostaddr=$at $DB sslmode=require" -Atc "select 'hello by ' || 3" || echo refused`,
		`hello by 1\nhello by 2\n(.*\n)*refused`,
		[]string{"db.test:5432"},
	},
	{
		"libpq in python (psycopg2)",
		[]string{"/usr/bin/python3"},
		`/usr/bin/python3 -c "import psycopg2; c = psycopg2.connect('host=db.test $DB').cursor(); c.execute('select sum(i) from generate_series(1, 1000) i'); print('hello by', c.fetchone()[0])
psycopg2.connect('host=other.test $DB')" || echo refused`,
		`hello by 500500\n(.*\n)*refused`, nil,
	},
}

// egressFiles are the programs among them that are no command.
var egressFiles = map[string]string{
	"Get.java": `import java.io.FileInputStream;
import java.net.URL;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

public class Get {
    public static void main(String[] args) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        trusted.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(args[0])));
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
        for (int i = 1; i < args.length; i++) {
            try {
                new URL(args[i]).openStream().transferTo(System.out);
            } catch (java.io.IOException e) {
                System.out.println("refused: " + e);
            }
        }
    }
}
`,
	"get.py": `import ssl, sys, urllib.request
for address in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(address, context=ssl.create_default_context(cafile='ca.pem')).read().decode())
    except OSError as e:
        print('refused:', e)
`,
	// With a third argument it goes by that proxy.
	"socket_client.py": `import os, socket, sys
host, port = sys.argv[1], int(sys.argv[2])
at, target = (host, port), '/socket'
if len(sys.argv) > 3:
    proxy, proxy_port = sys.argv[3].removeprefix('http://').split(':')
    at, target = (proxy, int(proxy_port)), f'http://{host}:{port}/socket'
stream = socket.create_connection(at).makefile('rwb')
stream.write(f'GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
             'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'.encode())
stream.flush()
assert b' 101 ' in stream.readline()
while stream.readline() != b'\r\n':
    pass
def send(kind, data):
    mask = os.urandom(4)
    stream.write(bytes([0x80 | kind, 0x80 | len(data)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
    stream.flush()
for n in range(100):
    data = os.urandom(n)
    send(2, data)
    assert stream.read(2 + n) == bytes([0x82, n]) + data
send(8, b'')
print('100 frames')
`,
}

// variablesCommand has programs go by the proxy that airlock tells them of, in either case of the variables. What is refused they
// learn with the reason.
const variablesCommand = `
curl -sS --cacert ca.pem https://web.test:$HTTPS/curl
curl -sS http://web.test:$HTTP/plain
curl -sS --proxy "$ALL_PROXY" --cacert ca.pem https://web.test:$HTTPS/socks
/usr/bin/python3 get.py https://web.test:$HTTPS/python
NODE_USE_ENV_PROXY=1 NODE_EXTRA_CA_CERTS=ca.pem node -e "fetch('https://web.test:$HTTPS/node').then(r => r.text()).then(console.log)"
./egress-client get ca.pem https://web.test:$HTTPS/go https://other.test:$HTTPS/
curl -sS https://other.test:$HTTPS/
curl -si http://other.test:$HTTP/ | head -1
`

// everywhere are the clients that are played with every backend. Of the others one is enough: the way out is init's,
// and the same.
var everywhere = []string{"curl, https", "Go, its own resolver", "git, host:path", "psql, verify-full"}

// TestEgressClients has real programs, without proxy variables, reach real servers that the policy names, and none
// that it doesn't.
func TestEgressClients(t *testing.T) {
	servers := startEgressServers(t)
	for _, backend := range []string{"native", "bwrap"} {
		t.Run(backend, func(t *testing.T) {
			runner, _, ws := egressRunner(t, servers, backend, "")
			for _, c := range egressClients {
				if backend != "native" && !*everyClient && !slices.Contains(everywhere, c.name) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					for _, need := range c.needs {
						if _, err := exec.LookPath(need); err != nil {
							lacksForEgress(t, err)
						}
					}
					denied := c.denied
					if denied == nil {
						denied = []string{"other.test"}
					}
					servers.do(t, runner, unproxied+c.command, c.want, denied)
				})
			}
			t.Run("WebSocket, by the proxy", func(t *testing.T) {
				servers.do(t, runner, `/usr/bin/python3 socket_client.py web.test $HTTP $http_proxy`, `^100 frames`, nil)
			})
			t.Run("by the variables, as they are", func(t *testing.T) {
				servers.do(t, runner, variablesCommand, `^hello by /curl
hello by /plain
hello by /socks
hello by /python

hello by /node

hello by /go
refused: .*airlock: other.test:\d+ is refused: not in network.allow
curl: .*403
HTTP/1.1 403 airlock: other.test:\d+ is refused: not in network.allow`, []string{
					fmt.Sprintf("other.test:%d", servers.ports["https"]), fmt.Sprintf("other.test:%d", servers.ports["http"]),
				})
			})
			if entries, err := os.ReadDir(ws); err != nil || len(entries) != len(egressFiles)+4 {
				t.Errorf("the workspace has %v, %v", entries, err)
			}
		})
	}
	for proxy, asked := range servers.asked {
		t.Run("by "+proxy, func(t *testing.T) {
			runner, _, _ := egressRunner(t, servers, "native", fmt.Sprintf("upstream = \"http://%s:%d\"\n", servers.addr, servers.ports[proxy]))
			servers.do(t, runner, unproxied+`curl -sS --cacert ca.pem https://web.test:$HTTPS/up && psql "host=db.test $DB" -Atc "select 'hello by ' || 6 * 7" && curl -sS https://other.test/`,
				`hello by /up\nhello by 42\n`, []string{"other.test"})
			for _, name := range []string{"https", "postgres"} {
				want := fmt.Sprintf("CONNECT %s:%d ", servers.addr, servers.ports[name])
				// squid writes it down once the connection has ended.
				for end := time.Now().Add(5 * time.Second); !strings.Contains(asked(), want) && time.Now().Before(end); {
					time.Sleep(20 * time.Millisecond)
				}
				if !strings.Contains(asked(), want) {
					t.Errorf("was not asked to %q:\n%s", want, asked())
				}
			}
		})
	}
}

// egressRunner opens a runner whose policy allows the servers by name. more goes into [network].
func egressRunner(t *testing.T, s *egressServers, backend, more string) (runner tools.Runner, state, workspace string) {
	t.Helper()
	if backend == "bwrap" {
		if err := bubblewrapHere(); err != nil {
			if slices.Contains(strings.Split(*require, ","), "bwrap") {
				t.Fatal("-require=bwrap: ", err)
			}
			t.Skip(err)
		}
	}
	if err := egressHere(t, backend); err != nil {
		lacksForEgress(t, err)
	}
	runner, state, workspace = configuredRunner(t, s.config(backend, more), func(*settings) {})
	s.fill(t, workspace)
	return runner, state, workspace
}

// config allows the servers by name.
func (s *egressServers) config(backend, more string) string {
	return fmt.Sprintf(`[sandbox]
backend = %q
[network]
mode = "allowlist"
allow = ["web.test:%d", "web.test:%d", "git.test:%d", "git.test:%d", "db.test:%d"]
private = ["%[7]s/32"]
resolve = {"web.test" = "%[7]s", "git.test" = "%[7]s", "db.test" = "%[7]s", "other.test" = "%[7]s"}
%[8]s`, backend, s.ports["https"], s.ports["http"], s.ports["ssh"], s.ports["git"], s.ports["postgres"], s.addr, more)
}

// fill puts what the clients need into a workspace.
func (s *egressServers) fill(t *testing.T, workspace string) {
	t.Helper()
	for name, content := range egressFiles {
		writeIn(t, workspace, name, content, 0o644)
	}
	writeIn(t, workspace, "ca.pem", string(s.ca), 0o644)
	writeIn(t, workspace, "known_hosts", string(s.known), 0o644)
	writeIn(t, workspace, "id", string(s.key), 0o600)
	copyEgressClient(t, workspace)
}

// egressHere tries to build the way out of a run.
func egressHere(t *testing.T, backend string) error {
	b, err := sandbox.Open(backend)
	if err != nil {
		return err
	}
	defer b.Close()
	form, err := b.(interface {
		ProbeEgress(context.Context) (sandbox.EgressForm, error)
	}).ProbeEgress(t.Context())
	return errors.Join(err, form.Unredirected)
}

// copyEgressClient puts the program that is [egressClient] into a workspace.
func copyEgressClient(t *testing.T, workspace string) {
	t.Helper()
	program, err := exec.LookPath("egress-client")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "egress-client"), content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// do has a run execute a command, and looks for a pattern in its output and for what it was refused.
func (s *egressServers) do(t *testing.T, runner tools.Runner, command, want string, denied []string) {
	t.Helper()
	start := time.Now()
	result, err := runner.Run(t.Context(), tools.Request{Tool: "run_shell", Command: s.command(command), Timeout: 10 * time.Minute}, nil)
	if err != nil || result.Status != tools.StatusExited || !regexp.MustCompile(want).MatchString(result.Output) {
		t.Fatalf("%v, no match for %q in\n%s", err, want, result.Text())
	}
	if !slices.Equal(result.Network.Denied, denied) {
		t.Errorf("refused %q, want %q", result.Network.Denied, denied)
	}
	t.Log(time.Since(start).Round(time.Millisecond))
}

// command is a command of the clients with the ports that the servers have.
func (s *egressServers) command(command string) string {
	port := func(name string) string { return fmt.Sprint(s.ports[name]) }
	return strings.NewReplacer(
		"$SSHPORT", port("ssh"), "$HTTPS", port("https"), "$HTTP", port("http"), "$GIT", port("git"), "$REPO", s.repo, "$LOGIN", s.user,
		"$SSH", "ssh -F none -i $PWD/id -o UserKnownHostsFile=$PWD/known_hosts -o StrictHostKeyChecking=yes -o BatchMode=yes",
		"$DB", "port="+port("postgres")+" user=airlock dbname=postgres sslmode=verify-full sslrootcert=ca.pem",
	).Replace(command)
}
