// Package envstest plays an installer for tests: wheels that it is given are an index, and the steps of an
// installation are carried out by itself, without pip and without a sandbox. What it installs is nothing
// that anybody could execute.
//
// # Limitations
//
// It resolves by taking the newest version that fits everything seen so far, and never goes back.
package envstest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"airlock/envs"
)

// Wheel is a wheel of the index.
type Wheel struct {
	Name, Version string
	Requires      []string
	Files         map[string]string
	Yanked        bool
	// Modes are of members that are no ordinary files. Claim, if not 0, is the size in bytes that a member whose
	// name ends in ".bin" says it unpacks to.
	Modes map[string]fs.FileMode
	Claim uint64
}

// File is its name.
func (w Wheel) File() string {
	return strings.ReplaceAll(envs.NormalizeName(w.Name), "-", "_") + "-" + w.Version + "-py3-none-any.whl"
}

// info is the directory of its metadata.
func (w Wheel) info() string {
	return strings.ReplaceAll(envs.NormalizeName(w.Name), "-", "_") + "-" + w.Version + ".dist-info"
}

// members are all files in it.
func (w Wheel) members() map[string]string {
	all := maps.Clone(w.Files)
	if all == nil {
		all = map[string]string{}
	}
	meta := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", w.Name, w.Version)
	for _, r := range w.Requires {
		meta += "Requires-Dist: " + r + "\n"
	}
	all[w.info()+"/METADATA"] = meta
	all[w.info()+"/WHEEL"] = "Wheel-Version: 1.0\nGenerator: envstest\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	record := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		record += name + ",,\n"
	}
	all[w.info()+"/RECORD"] = record + w.info() + "/RECORD,,\n"
	return all
}

// Bytes is the archive, the same each time.
func (w Wheel) Bytes() []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	all := w.members()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if mode, ok := w.Modes[name]; ok {
			h.SetMode(mode)
		}
		create := z.CreateHeader
		if w.Claim > 0 && strings.HasSuffix(name, ".bin") {
			h.Method, h.UncompressedSize64, h.CompressedSize64 = zip.Store, w.Claim, uint64(len(all[name]))
			create = z.CreateRaw
		}
		f, err := create(h)
		if err == nil {
			_, err = f.Write([]byte(all[name]))
		}
		if err != nil {
			panic("bug: " + err.Error()) // a buffer takes everything
		}
	}
	if err := z.Close(); err != nil {
		panic("bug: " + err.Error())
	}
	return b.Bytes()
}

// SHA256 is the hash of the archive.
func (w Wheel) SHA256() string {
	sum := sha256.Sum256(w.Bytes())
	return hex.EncodeToString(sum[:])
}

// Installer carries steps out. It is safe for concurrent use.
type Installer struct {
	// Wheels are the index. Change it only between calls.
	Wheels []Wheel
	// Before is called with the name of each step, and can fail it. ctx ends with the step.
	Before func(ctx context.Context, step string) error
	// NoPip has the interpreter say that it has no pip that can be used, and OldPip that it has one of this version.
	NoPip  bool
	OldPip string
	// ABI is what the interpreter says of its own, "" for one of Python.
	ABI string

	mu    sync.Mutex
	steps map[string]int
}

// Steps is how often a step was carried out.
func (i *Installer) Steps(name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.steps[name]
}

// Python is what the interpreter says that environments are made for.
const Python = "3.11"

// Run implements [envs.Installer].
func (i *Installer) Run(ctx context.Context, s envs.Step) (envs.Outcome, error) {
	i.mu.Lock()
	if i.steps == nil {
		i.steps = map[string]int{}
	}
	i.steps[s.Name]++
	i.mu.Unlock()
	if i.Before != nil {
		if err := i.Before(ctx, s.Name); err != nil {
			return envs.Outcome{}, err
		}
	}
	at := map[string]string{}
	for _, b := range s.Binds {
		at[b.Target] = b.Source
	}
	if (s.Name == "install" || s.Name == "probe") == s.Network {
		return envs.Outcome{}, fmt.Errorf("the step %s has network: %t", s.Name, s.Network)
	}
	text, err := os.ReadFile(filepath.Join(at["/build"], "requirements.txt"))
	if err != nil {
		return envs.Outcome{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var answer any
	var out envs.Outcome
	switch s.Name {
	case "probe":
		pip := "/pip"
		if i.NoPip {
			pip = ""
		}
		answer = map[string]any{
			"executable": "/usr/bin/python" + Python, "version": Python + ".2", "abi": cmp.Or(i.ABI, "cpython-311-x86_64-linux-gnu"), "pip": pip, "old_pip": i.OldPip,
			"markers": map[string]string{"python_version": Python, "python_full_version": Python + ".2", "implementation_name": "cpython", "sys_platform": "linux", "platform_machine": "x86_64", "os_name": "posix"},
		}
	case "resolve":
		answer, out.Output = i.resolve(lines)
	case "fetch":
		answer, err = map[string]int{"status": 0}, i.fetch(lines, filepath.Join(at["/build"], "wheels"))
	case "install":
		answer, err = map[string]int{"status": 0}, i.install(lines, at["/wheels"], at["/env"])
	}
	if err != nil {
		return out, err
	}
	text, err = json.Marshal(answer)
	if err != nil {
		return out, err
	}
	return out, os.WriteFile(filepath.Join(at["/build"], "answer.json"), text, 0o644)
}

func (i *Installer) resolve(lines []string) (answer any, output string) {
	var asked []envs.Requirement
	for _, line := range lines {
		r, err := envs.ParseRequirement(line)
		if err != nil {
			return map[string]int{"status": 1}, "ERROR: Invalid requirement: " + line
		}
		asked = append(asked, r)
	}
	chosen := map[string]Wheel{}
	for n := 0; n < len(asked); n++ {
		name := asked[n].Name
		var best *Wheel
		for k, w := range i.Wheels {
			fits := envs.NormalizeName(w.Name) == name && !slices.ContainsFunc(asked, func(r envs.Requirement) bool { return r.Name == name && !r.Contains(w.Version) })
			if fits && (best == nil || newer(w.Version, best.Version)) {
				best = &i.Wheels[k]
			}
		}
		if best == nil {
			return map[string]int{"status": 1}, "ERROR: No matching distribution found for " + asked[n].String()
		}
		if _, known := chosen[name]; known {
			chosen[name] = *best
			continue
		}
		chosen[name] = *best
		for _, text := range best.Requires {
			r, err := envs.ParseRequirement(text)
			if err != nil {
				return map[string]int{"status": 1}, "ERROR: Invalid requirement: " + text
			}
			asked = append(asked, r)
		}
	}
	var packages []map[string]any
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		w := chosen[name]
		packages = append(packages, map[string]any{
			"name": w.Name, "version": w.Version, "sha256": w.SHA256(), "url": "http://index.test/files/" + w.File(), "yanked": w.Yanked, "size": len(w.Bytes()), "requires": w.Requires,
		})
	}
	return map[string]any{"status": 0, "packages": packages}, ""
}

func newer(a, b string) bool {
	va, errA := envs.ParseVersion(a)
	vb, errB := envs.ParseVersion(b)
	return errA == nil && errB == nil && va.Compare(vb) > 0
}

// locked finds the wheel of a line with a hash.
func (i *Installer) locked(line string) (Wheel, error) {
	for _, w := range i.Wheels {
		if strings.HasSuffix(line, "--hash=sha256:"+w.SHA256()) {
			return w, nil
		}
	}
	return Wheel{}, errors.New("no wheel of the index has the hash of " + line)
}

func (i *Installer) fetch(lines []string, dir string) error {
	for _, line := range lines {
		w, err := i.locked(line)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, w.File()), w.Bytes(), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (i *Installer) install(lines []string, wheels, env string) error {
	for _, line := range lines {
		w, err := i.locked(line)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(wheels, w.File())); err != nil {
			return err
		}
		for name, content := range w.members() {
			file := filepath.Join(env, "lib", "python"+Python, "site-packages", name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
				return err
			}
			if module, ok := strings.CutSuffix(filepath.Base(file), ".py"); ok { // what no record names
				compiled := filepath.Join(filepath.Dir(file), "__pycache__", module+".cpython-311.pyc")
				if err := errors.Join(os.MkdirAll(filepath.Dir(compiled), 0o755), os.WriteFile(compiled, []byte("compiled: "+content), 0o644)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
