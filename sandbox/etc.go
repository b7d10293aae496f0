package sandbox

import (
	"os"
	"path/filepath"
)

// etcShown are the entries of /etc, as globs, that programs need and that hold no secrets. What is not on
// this list a run doesn't see: passwords, host keys, keytabs, and the settings of the host's services.
// Directories that hold keys beside what is needed, such as ssl, are listed by their parts.
var etcShown = []string{
	"ssl/certs", "ssl/cert.pem", "ssl/ct_log_list.cnf", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf",
	"pki/ca-trust", "pki/java", "pki/nssdb", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/ct_log_list.cnf", "pki/tls/openssl.cnf",
	"crypto-policies", "gnutls",
	"ld.so.*", "alternatives", "localtime", "timezone", "locale.*", "default/locale", "mime.types", "magic*",
	"protocols", "services", "rpc", "host.conf", "gai.conf", "networks", "ethertypes",
	"java*", ".java", "python*", "perl", "R", "ghc", "fonts", "groff", "texmf", "ImageMagick-*", "OpenCL", "glvnd", "vulkan",
	"inputrc", "terminfo", "bash.bashrc", "bash_completion", "bash_completion.d", "bashrc", "profile", "zsh", "zshrc", "zprofile", "zshenv",
	"skel", "shells", "login.defs", "xattr.conf", "manpath.config", "nanorc", "vimrc", "vim", "issue",
	"debian_version", "os-release", "lsb-release", "redhat-release", "fedora-release", "system-release", "alpine-release", "arch-release", "SuSE-release",
	"mke2fs.conf",
}

// showEtc adds the part of /etc that runs see.
func (s *System) showEtc() {
	world := Account{UID: -2, GID: -2} // nobody's user and nobody's group: what everyone may read
	for _, glob := range etcShown {
		names, err := filepath.Glob("/etc/" + glob)
		if err != nil {
			continue // the list has no malformed patterns
		}
		for _, name := range names {
			fi, err := os.Stat(name)
			if err != nil {
				continue
			}
			want := os.FileMode(0o4)
			if fi.IsDir() {
				want = 0o5
			}
			// Root could read more. A file that not everyone may read was not meant for everyone.
			if world.may(fi, want) {
				s.show(name)
			}
		}
	}
}
