package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// trustStore keeps which project policies the user accepted: one JSON document for each workspace, in
// the state directory. A document names the workspace's real path and the digest of the policy's
// content; anything else that stands there later is not trusted.
type trustStore struct {
	dir string
}

func (p places) trust() trustStore { return trustStore{filepath.Join(p.state, "trust")} }

// trustRecord is the document.
type trustRecord struct {
	Workspace string `json:"workspace"`
	SHA256    string `json:"sha256"`
}

// file is named by a digest, since a path can be longer than a name and hold anything.
func (t trustStore) file(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(t.dir, hex.EncodeToString(sum[:])+".json")
}

// holds reports whether the policy is trusted as it is, or, if it isn't, whether it was and has changed since. A document
// that can't be understood trusts nothing.
func (t trustStore) holds(p *projectPolicy) (trusted, changed bool, err error) {
	text, err := os.ReadFile(t.file(p.workspace))
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	var record trustRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return false, false, nil
	}
	trusted = record == trustRecord{Workspace: p.workspace, SHA256: p.digest()}
	return trusted, !trusted && record.Workspace == p.workspace, nil
}

// add records that the policy is trusted, in the place of what was trusted for its workspace before.
// The document is replaced as a whole: a reader, or a crash, sees the old one or the new one.
func (t trustStore) add(p *projectPolicy) error {
	text, err := json.MarshalIndent(trustRecord{Workspace: p.workspace, SHA256: p.digest()}, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(t.file(p.workspace), append(text, '\n'))
}
