package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/envs/envstest"
	"airlock/tools"
)

// privateCA makes a certificate of index.test that only the authority in a file vouches for.
func privateCA(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	now := time.Now()
	template := func(n int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
			BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca, leaf := template(1, "A Private Authority"), template(2, "index.test")
	ca.IsCA, leaf.DNSNames, leaf.KeyUsage = true, []string{"index.test"}, x509.KeyUsageDigitalSignature
	authority, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}), 0o644); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, file
}

// realPackage is a package of npm that holds wheels as their authors published them.
const realPackage = "@galaxyproject/jupyterlite@0.0.31"

// realWheels gives the wheels in realPackage, by the name of their file. It is fetched once, into the user's cache.
func realWheels(ctx context.Context) (map[string][]byte, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "airlock-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	archives, _ := filepath.Glob(filepath.Join(dir, "galaxyproject-jupyterlite-*.tgz"))
	if len(archives) == 0 {
		packing, err := os.MkdirTemp(dir, "pack-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(packing)
		ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
		defer stop()
		pack := exec.CommandContext(ctx, "npm", "pack", "--silent", realPackage)
		pack.Dir = packing
		if out, err := pack.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("npm pack %s: %w: %s", realPackage, err, lastLine(string(out)))
		}
		if archives, _ = filepath.Glob(filepath.Join(packing, "*.tgz")); len(archives) != 1 {
			return nil, fmt.Errorf("npm pack left %q", archives)
		}
		kept := filepath.Join(dir, filepath.Base(archives[0]))
		if err := os.Rename(archives[0], kept); err != nil {
			return nil, err
		}
		archives = []string{kept}
	}
	f, err := os.Open(archives[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	wheels := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return wheels, nil
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(h.Name, ".whl") {
			if wheels[path.Base(h.Name)], err = io.ReadAll(r); err != nil {
				return nil, err
			}
		}
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// An index over https whose certificate only packages.cert vouches for, with wheels that others built: without
// packages.cert the error says that it is the certificate.
func TestIndexOverHTTPS(t *testing.T) {
	wheels := []envstest.Wheel{{Name: "leaf", Version: "1.0", Files: map[string]string{"leaf.py": "V = '1.0'\n"}}}
	requirements, code, want := []string{"leaf"}, "import leaf; print(leaf.V)", "1.0\n"
	built, builtErr := realWheels(t.Context())
	if builtErr == nil {
		requirements = append(requirements, "python-dateutil", "attrs", "packaging")
		code += "\nimport attr, dateutil.parser, six, packaging.version\nprint(dateutil.parser.parse('2026-01-02').day, attr.__version__, packaging.version.Version('1.0') < packaging.version.Version('1.1'), six.__file__)"
		want += "2 26.1.0 True /env/lib/python"
	}
	index := indexOf(wheels, nil)
	index.add(built)
	certificate, ca := privateCA(t)
	index.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	index.Config.ErrorLog = log.New(io.Discard, "", 0) // the installer that does not trust it hangs up
	index.StartTLS()
	t.Cleanup(index.Close)
	text := "[packages]\nhosts = []\nindex = \"https://index.test:" + index.port() + "/simple\"\nallow = [\"leaf\", \"python-dateutil\", \"six\", \"attrs\", \"packaging\"]\n"
	state := t.TempDir()
	if err := openWithPackages(t, state, text).install("leaf"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without packages.cert: %v", err)
	}
	in := openWithPackages(t, state, text+"cert = \""+ca+"\"\n")
	if err := in.install(requirements...); err != nil {
		t.Fatal(err)
	}
	if text := in.run(tools.Request{Tool: "run_python", Code: code}); !strings.HasPrefix(text, want) {
		t.Errorf("a run: %s; want %q", text, want)
	}
	t.Run("real wheels", func(t *testing.T) {
		if builtErr != nil && slices.Contains(strings.Split(*require, ","), "wheels") {
			t.Fatal("-require=wheels: ", builtErr)
		} else if builtErr != nil {
			t.Skip("no wheels that others built were installed: ", builtErr)
		}
	})
}
