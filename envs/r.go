package envs

import (
	"context"
	_ "embed" // the driver
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed driver.R
var rDriver string

// rHost is the R that environments are made for, as it describes itself.
type rHost struct {
	rscript  string // its path
	Version  string `json:"version"`
	Platform string `json:"platform"`
	Library  string `json:"library"` // of shared libraries
}

// errNoR names what a person has to install.
var errNoR = errors.New("there is no R that runs can execute; hint: install it (Debian and Ubuntu: r-base-core, and r-base-dev for packages that are compiled; Fedora: R-core; Alpine: R)")

// kind says what layers can be used with it: R keeps packages working within a minor version.
func (h *rHost) kind() string {
	series := strings.SplitN(h.Version, ".", 3)
	return "R " + strings.Join(series[:min(2, len(series))], ".") + " " + h.Platform
}

// findR gives the path of Rscript, of the first R on the path that a run sees.
func findR(o FindOptions) (string, error) {
	for _, dir := range append(filepath.SplitList(o.Path), "/usr/local/bin", "/usr/bin") {
		path := filepath.Join(dir, "Rscript")
		if filepath.IsAbs(dir) && exists(path) && (o.Visible == nil || o.Visible(path)) {
			return path, nil
		}
	}
	return "", errNoR
}

// step is one that R executes. Only what is in libraries is seen beside what R and the host bring.
func (h *rHost) step(name string, libraries ...string) Step {
	return Step{
		Name: name, Argv: []string{h.rscript, "--vanilla", "/build/driver.R", name},
		Env: []string{"R_LIBS=" + strings.Join(libraries, ":"), "R_LIBS_USER=" + rMountPoint, "CURL_CA_BUNDLE=" + certPath},
	}
}

// drive runs the driver with lines to work on.
func (h *rHost) drive(ctx context.Context, c *Conversation, w *work, step Step, lines []string, answer any) (Outcome, error) {
	if c.packages.Cert == "" {
		step.Env = step.Env[:len(step.Env)-1]
	} else if step.Network {
		step.Binds = append(step.Binds, Bind{Source: c.packages.Cert, Target: certPath})
	}
	out, err := c.store.drive(ctx, c.installer, w, step, map[string]string{"driver.R": rDriver, "requirements.txt": strings.Join(lines, "\n") + "\n"}, answer)
	if failed := new(StepError); errors.As(err, &failed) {
		// R quotes addresses whole.
		failed.Outcome.Output = strings.ReplaceAll(failed.Outcome.Output, strings.TrimSuffix(c.packages.R.Repo, "/"), bareURL(strings.TrimSuffix(c.packages.R.Repo, "/")))
	}
	return out, err
}

// r finds R and asks it what it is, once.
func (c *Conversation) r(ctx context.Context) (*rHost, error) {
	rscript, err := findR(c.find)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	known := c.rHost
	c.mu.Unlock()
	if known != nil && known.rscript == rscript {
		return known, nil
	}
	w, err := c.store.newWork()
	if err != nil {
		return nil, err
	}
	defer w.close()
	h := &rHost{rscript: rscript}
	if _, err := h.drive(ctx, c, w, h.step("probe"), nil, h); err != nil {
		return nil, err
	}
	if !rVersion().MatchString(h.Version) || h.Platform == "" || strings.ContainsAny(h.Platform, "/\n") {
		return nil, fmt.Errorf("%s does not say what version of R it is", rscript)
	}
	c.mu.Lock()
	c.rHost = h
	c.mu.Unlock()
	return h, nil
}
