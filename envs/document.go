package envs

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A document is one JSON file of the state directory. It is validated before it is written and when it
// is read, and replaced as a whole, so that nobody reads half of one.

// maxDocument bounds what is read of one.
const maxDocument = 8 << 20

type document interface{ Validate() error }

// writeDocument replaces the file at path. The caller holds the lock that goes with it.
func writeDocument(path string, d document) (err error) {
	if err := d.Validate(); err != nil {
		return fmt.Errorf("bug: %s would not be valid: %w", filepath.Base(path), err)
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxDocument {
		return fmt.Errorf("what belongs into %s is longer than %d bytes", filepath.Base(path), maxDocument)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readDocument reads the file at path into d. A missing file gives an error that is [fs.ErrNotExist].
func readDocument(path string, d document) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return err
	}
	if len(text) > maxDocument {
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("longer than %d bytes", maxDocument)}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(d)
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is damaged: %w; remove it", err)}
	}
	return nil
}

// documentNames lists the documents in a directory by their names without ".json".
func documentNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, err
}

// newID names something: eight hexadecimal digits.
func newID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func isID(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 8
}

func isDigest(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 64 && strings.ToLower(s) == s
}
