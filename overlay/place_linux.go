package overlay

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

// placeName is the file, in the workspace's part of the state directory, that says which workspace that is
// and where its layers and its history are: neither follows from the other, and each can be gone.
const placeName = "place"

type recordedPlace struct {
	Workspace rawPath `json:"workspace"`
	Layers    rawPath `json:"layers"` // "" where no transaction was begun yet
}

// notePlace writes it down, unless that was done already.
func (w *Workspace) notePlace() error {
	text, err := json.Marshal(recordedPlace{rawPath(w.root.path), rawPath(w.scratch.base.path)})
	if err != nil {
		return err
	}
	if was, err := os.ReadFile(filepath.Join(w.state, placeName)); err == nil && bytes.Equal(was, text) {
		return nil
	}
	return w.own.replace(placeName, text, w.config.Durable)
}
