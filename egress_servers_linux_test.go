package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// egressServers are what runs reach in TestEgressClients. All of them listen at one address of the host's loopback
// that no other test has, at the ports that they are known for, as far as this user may bind those.
type egressServers struct {
	addr  string
	ports map[string]int           // "https", "http", "ssh", "postgres", "git", "tinyproxy", "squid"
	user  string                   // whom ssh lets in
	repo  string                   // a git repository with a file named file
	ca    []byte                   // the certificate, in PEM, by which those of web.test and db.test are signed
	key   []byte                   // the key that ssh takes
	known []byte                   // ssh's known_hosts
	asked map[string]func() string // what the proxies, tinyproxy and squid, say that they were asked for
}

// needServers returns the programs by name, or skips the test.
func needServers(t *testing.T) (paths map[string]string) {
	paths = map[string]string{}
	for name, patterns := range map[string][]string{
		"sshd":       {"/usr/sbin/sshd"},
		"postgres":   {"/usr/lib/postgresql/*/bin/postgres"},
		"initdb":     {"/usr/lib/postgresql/*/bin/initdb"},
		"tinyproxy":  {"/usr/bin/tinyproxy", "/usr/sbin/tinyproxy"},
		"squid":      {"/usr/sbin/squid"},
		"ssh-keygen": {"/usr/bin/ssh-keygen"},
		"git":        {"/usr/bin/git"},
	} {
		for _, pattern := range patterns {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				paths[name] = found[len(found)-1]
			}
		}
		if paths[name] == "" {
			lacksForEgress(t, fmt.Errorf("no %s", strings.Join(patterns, " and no ")))
		}
	}
	return paths
}

// lacksForEgress skips a test of the way out, or fails it with -require=egress.
func lacksForEgress(t *testing.T, err error) {
	t.Helper()
	if slices.Contains(strings.Split(*require, ","), "egress") {
		t.Fatal("-require=egress: ", err)
	}
	t.Skip(err)
}

// ownLoopback is an address of the loopback network for this process alone, so that well-known ports are free at it.
func ownLoopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>16&0x7f, pid>>8&0xff, pid&0xff)
}

func startEgressServers(t *testing.T) *egressServers {
	t.Helper()
	paths := needServers(t)
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &egressServers{addr: ownLoopback(), ports: map[string]int{}, user: account.Username, asked: map[string]func() string{}}
	for name, port := range map[string]int{"https": 443, "http": 80, "ssh": 22, "postgres": 5432, "git": 9418, "tinyproxy": 8888, "squid": 3128} {
		s.ports[name] = bindable(t, s.addr, port)
	}
	dir := t.TempDir()
	web := s.certify(t, dir)
	s.serveWeb(t, web)
	s.makeRepository(t, paths, dir)

	type proxyAsked struct {
		proxy string
		said  func() string
	}
	asked := make(chan proxyAsked, 2)
	var all sync.WaitGroup
	all.Go(func() { s.startSSH(t, paths, dir) })
	all.Go(func() { s.startPostgres(t, paths, dir) })
	all.Go(func() {
		startServerProcess(t, "Ready to rumble", syscall.SIGTERM, exec.Command(paths["git"], "daemon", "--verbose", "--export-all",
			"--listen="+s.addr, fmt.Sprintf("--port=%d", s.ports["git"]), "--base-path="+dir, dir))
	})
	all.Go(func() {
		config := fmt.Sprintf("Listen %s\nPort %d\nAllow 127.0.0.0/8\nTimeout 600\nLogLevel Info\nMaxClients 50\n", s.addr, s.ports["tinyproxy"])
		tinyproxy := startServerProcess(t, "Accepting connections", syscall.SIGTERM,
			exec.Command(paths["tinyproxy"], "-d", "-c", writeIn(t, dir, "tinyproxy.conf", config, 0o600)))
		asked <- proxyAsked{"tinyproxy", tinyproxy.said}
	})
	all.Go(func() { asked <- proxyAsked{"squid", s.startSquid(t, paths)} })
	all.Wait()
	for range cap(asked) {
		one := <-asked
		s.asked[one.proxy] = one.said
	}
	if t.Failed() {
		t.FailNow()
	}
	return s
}

// startSquid starts squid, which, run by root, goes on as a user of its own: its log lies where that one may write.
func (s *egressServers) startSquid(t *testing.T, paths map[string]string) (asked func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "airlock-squid-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Error(err)
		return func() string { return "" }
	}
	log := filepath.Join(dir, "access.log")
	config := fmt.Sprintf(`http_port %s:%d
http_access allow all
cache deny all
access_log stdio:%s
cache_log %s/cache.log
pid_filename none
coredump_dir %[4]s
visible_hostname squid.test
pinger_enable off
shutdown_lifetime 0 seconds
`, s.addr, s.ports["squid"], log, dir)
	startServerProcess(t, "Accepting HTTP Socket connections", syscall.SIGTERM,
		exec.Command(paths["squid"], "-N", "-d1", "-f", writeIn(t, dir, "squid.conf", config, 0o644)))
	return func() string {
		text, _ := os.ReadFile(log) // none is what it says when it was asked for nothing
		return string(text)
	}
}

// bindable is a port, or any free one where this user may not bind it.
func bindable(t *testing.T, addr string, port int) int {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", addr, port))
	if err != nil {
		l, err = net.Listen("tcp", addr+":0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func writeIn(t *testing.T, dir, name, content string, mode os.FileMode) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Error(err)
	}
	return path
}

// certify makes an authority, and one certificate for web.test and db.test, also as files for PostgreSQL.
func (s *egressServers) certify(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	authorityKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "web.test"}, DNSNames: []string{"web.test", "db.test"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	root, err1 := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	der, err2 := x509.CreateCertificate(rand.Reader, leaf, authority, key.Public(), authorityKey)
	private, err3 := x509.MarshalECPrivateKey(key)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	writeIn(t, dir, "server.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o644)
	writeIn(t, dir, "server.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})), 0o600)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveWeb serves the same by https and by http: a greeting, and a WebSocket that sends back what it gets.
func (s *egressServers) serveWeb(t *testing.T, certificate tls.Certificate) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello by", r.URL.Path) })
	mux.HandleFunc("/socket", func(w http.ResponseWriter, r *http.Request) {
		if err := echoFrames(w, r); err != nil {
			t.Error("websocket: ", err)
		}
	})
	for _, name := range []string{"https", "http"} {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", s.addr, s.ports[name]))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(mux)
		server.Listener.Close()
		server.Listener = l
		if name == "http" {
			server.Start()
		} else {
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
			server.StartTLS()
		}
		t.Cleanup(server.Close)
	}
}

// echoFrames is the server of a WebSocket (RFC 6455) that sends each short frame back, until one says goodbye.
func echoFrames(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Upgrade") != "websocket" {
		return fmt.Errorf("no upgrade: %v", r.Header)
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	for {
		var head [6]byte // two bytes, and the client's mask
		if _, err := io.ReadFull(rw, head[:]); err != nil {
			return err
		}
		frame := make([]byte, 2+int(head[1]&0x7f))
		if _, err := io.ReadFull(rw, frame[2:]); err != nil {
			return err
		}
		frame[0], frame[1] = head[0], head[1]&0x7f
		for i := range frame[2:] {
			frame[2+i] ^= head[2+i%4]
		}
		if _, err := conn.Write(frame); err != nil {
			return err
		}
		if frame[0]&0xf == 8 { // close
			return nil
		}
	}
}

// makeRepository makes a repository of a megabyte, bare, as a server has it.
func (s *egressServers) makeRepository(t *testing.T, paths map[string]string, dir string) {
	t.Helper()
	s.repo = filepath.Join(dir, "repo.git")
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	writeIn(t, work, "noise", string(noise), 0o644)
	writeIn(t, work, "file", "hello by git\n", 0o644)
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@b.test", "commit", "-qm", "one"},
		{"clone", "-q", "--bare", work, s.repo},
	} {
		cmd := exec.Command(paths["git"], args...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
}

func (s *egressServers) startSSH(t *testing.T, paths map[string]string, dir string) {
	for _, name := range []string{"host_key", "user_key"} {
		if out, err := exec.Command(paths["ssh-keygen"], "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Errorf("ssh-keygen: %v\n%s", err, out)
			return
		}
	}
	host, err1 := os.ReadFile(filepath.Join(dir, "host_key.pub"))
	key, err2 := os.ReadFile(filepath.Join(dir, "user_key"))
	if err1 != nil || err2 != nil {
		t.Error(err1, err2)
		return
	}
	s.key, s.known = key, append([]byte("* "), host...)
	// The home directory is not the person's, so that nothing of theirs is executed.
	config := writeIn(t, dir, "sshd_config", fmt.Sprintf(`ListenAddress %s
Port %d
HostKey %[3]s/host_key
AuthorizedKeysFile %[3]s/user_key.pub
UsePAM no
StrictModes no
PasswordAuthentication no
PidFile none
SetEnv HOME=%[3]s
`, s.addr, s.ports["ssh"], dir), 0o600)
	args := []string{paths["sshd"], "-D", "-e", "-f", config}
	if os.Geteuid() == 0 {
		// It wants a directory in /run, which shall not be the host's.
		args = append([]string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$0" "$@"`}, args...)
	}
	startServerProcess(t, "Server listening", syscall.SIGTERM, exec.Command(args[0], args[1:]...))
}

func (s *egressServers) startPostgres(t *testing.T, paths map[string]string, dir string) {
	data := filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(paths[name], args...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
		if os.Geteuid() == 0 {
			// PostgreSQL refuses to be root. In a namespace of its own it is nobody, and has root's files.
			const nobody = 65534
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: 0, Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: nobody, HostID: 0, Size: 1}},
			}
		}
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-U", "airlock", "--auth=trust", "--no-sync", "--no-instructions").CombinedOutput(); err != nil {
		t.Errorf("initdb: %v\n%s", err, out)
		return
	}
	startServerProcess(t, "ready to accept connections", syscall.SIGINT, command("postgres", "-D", data, "-p", fmt.Sprint(s.ports["postgres"]),
		"-c", "listen_addresses="+s.addr, "-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "shared_buffers=16MB",
		"-c", "ssl=on", "-c", "ssl_cert_file="+dir+"/server.crt", "-c", "ssl_key_file="+dir+"/server.key"))
}
