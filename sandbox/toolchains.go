package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// toolchain is a place below a home directory where version managers and installers put programs.
type toolchain struct {
	root  string   // relative to the home directory
	parts []string // what of it is shown, where the rest holds credentials or caches; all if empty
	env   string   // the variable that names root to its own programs, if there is one
	asked bool     // shown only where PATH leads into it
}

var toolchains = []toolchain{
	{root: ".pyenv", env: "PYENV_ROOT"},
	{root: ".rbenv", env: "RBENV_ROOT"},
	{root: ".nodenv", env: "NODENV_ROOT"},
	{root: ".nvm", env: "NVM_DIR"},
	{root: ".local/share/fnm"},
	{root: ".volta", parts: []string{"bin", "tools"}, env: "VOLTA_HOME"},
	{root: ".rustup", env: "RUSTUP_HOME"},
	{root: ".cargo", parts: []string{"bin"}},
	{root: ".asdf", env: "ASDF_DATA_DIR"},
	{root: ".local/share/mise", env: "MISE_DATA_DIR"},
	{root: ".local/share/uv", parts: []string{"python", "tools"}},
	{root: ".local/share/pipx"},
	{root: ".sdkman", parts: []string{"candidates", "bin"}},
	{root: ".jenv", env: "JENV_ROOT"},
	{root: ".bun", parts: []string{"bin"}},
	{root: ".deno", parts: []string{"bin"}},
	{root: ".ghcup"},
	{root: ".juliaup"},
	{root: "go", parts: []string{"bin"}},
	{root: ".linuxbrew"},
	{root: "miniconda3"},
	{root: "anaconda3"},
	{root: "miniforge3"},
	{root: "mambaforge"},
	{root: ".local/bin", asked: true},
	{root: ".npm-global", parts: []string{"bin", "lib"}, asked: true},
	{root: ".local/share/pnpm", asked: true},
}

// credentialFiles are hidden where they lie in what a toolchain shows, in one of credentialDirs.
var credentialFiles = []string{
	"credentials", "credentials.toml", ".npmrc", "npmrc", ".pypirc", ".netrc", ".condarc", ".git-credentials", ".Renviron",
	"pip.conf", ".yarnrc", ".yarnrc.yml", "bunfig.toml", ".bunfig.toml", "gradle.properties", "auth.json",
}

// credentialDirs are globs relative to what is shown: its top, and where managers of versions put an interpreter, since
// pip and npm keep their settings for all users below that: pip.conf in it, npmrc in its etc.
var credentialDirs = []string{
	"", "*",
	"versions/*", "versions/*/etc", "versions/*/envs/*", // pyenv, nodenv
	"versions/node/*/etc",              // nvm
	"installs/*/*", "installs/*/*/etc", // asdf, mise
	"venvs/*",              // pipx
	"envs/*", "envs/*/etc", // conda
	"image/node/*/etc",                 // volta
	"node-versions/*/installation/etc", // fnm
	"nodejs/*/etc",                     // pnpm
	"gradle/*",                         // sdkman
}

// showToolchains adds the toolchains below the homes that PATH leads into, which come first since they
// are what the person uses, and below the account's. A home that PATH leads into is looked at for all of
// them: cargo's programs, which are on PATH, are doors to rustup's, which are not.
func (s *System) showToolchains(env []string) {
	dirs := strings.Split(getenv(env, "PATH"), ":")
	var homes []string
	for _, tc := range toolchains {
		homes = append(homes, tc.homesIn(dirs)...)
	}
	own := []string{s.Account.Home, passwdHome(s.Account.UID), "/home/linuxbrew"}
	homes = append(homes, own...)

	for _, tc := range toolchains {
		looked := homes
		if tc.asked {
			looked = tc.homesIn(dirs)
		}
		for _, home := range looked {
			if !path.IsAbs(home) || path.Clean(home) == "/" {
				continue
			}
			root := path.Join(home, tc.root)
			within := home
			if slices.Contains(own, home) {
				within = "/"
			}
			shown := s.showToolchain(root, tc.parts, within)
			if shown && tc.env != "" && path.Clean(home) != s.Account.Home && getenv(s.Env, tc.env) == "" {
				s.Env = append(s.Env, tc.env+"="+root)
			}
		}
	}
}

// staysIn reports whether a path leads to something below dir. A home that only PATH says is one can be any directory that
// somebody has written to, and hold a link to anything.
func staysIn(name, dir string) bool {
	real, _, err := FollowLinks(name)
	realDir, _, dirErr := FollowLinks(dir)
	return err == nil && dirErr == nil && under(real, realDir)
}

// homesIn finds the homes in which directories of a PATH that lie in the toolchain are.
func (tc toolchain) homesIn(dirs []string) []string {
	var homes []string
	for _, dir := range dirs {
		if home, _, ok := strings.Cut(path.Clean(dir)+"/", "/"+tc.root+"/"); ok && path.IsAbs(home) {
			homes = append(homes, home)
		}
	}
	return homes
}

// showToolchain shows parts of root, or all of it, without credentials, as far as they lead to something below within.
func (s *System) showToolchain(root string, parts []string, within string) (shown bool) {
	if len(parts) == 0 {
		parts = []string{"."}
	}
	for _, part := range parts {
		dir := path.Join(root, part)
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() || s.Visible(dir) || !staysIn(dir, within) {
			continue
		}
		if f, err := os.Open(dir); err != nil { // only if readable
			continue
		} else {
			f.Close()
		}
		if !s.show(dir) {
			continue
		}
		shown = true
		s.maskCredentials(dir)
	}
	return shown
}

// maskCredentials hides what lies in a directory that is shown and is named as credentials are.
func (s *System) maskCredentials(dir string) {
	for _, at := range credentialDirs {
		found, _ := filepath.Glob(path.Join(globQuote(dir), at))
		for _, in := range found {
			for _, name := range credentialFiles {
				f := path.Join(in, name)
				if _, err := os.Lstat(f); err != nil {
					continue
				}
				// What is reached through a link is hidden where it is, if it can be seen there.
				if real, _, err := FollowLinks(f); err == nil && s.covered(real) {
					s.Mounts = append(s.Mounts, Mount{Kind: MountMask, Target: real})
				}
			}
		}
	}
}

// globQuote makes a path a pattern that matches it alone.
func globQuote(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(p)
}
