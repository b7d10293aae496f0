package overlay

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// WaitingIn says of every workspace of a state directory what waits for review, also of those that are
// not there any more. What can't be told of is in the error, beside the rest.
func WaitingIn(stateDir string) ([]WaitingRuns, error) {
	names, err := filepath.Glob(filepath.Join(stateDir, "workspaces", "*", placeName))
	if err != nil {
		return nil, err
	}
	var all []WaitingRuns
	var failed []error
	for _, name := range names {
		var one WaitingRuns
		text, err := os.ReadFile(name)
		if err == nil {
			one, err = waitingAt(text)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
		if len(one.Runs) > 0 {
			all = append(all, one)
		}
	}
	return all, errors.Join(failed...)
}

func waitingAt(text []byte) (WaitingRuns, error) {
	var p recordedPlace
	if err := json.Unmarshal(text, &p); err != nil {
		return WaitingRuns{}, err
	}
	one := WaitingRuns{Workspace: string(p.Workspace), Layers: filepath.Join(string(p.Layers), waitingName)}
	base, err := openTree(string(p.Layers))
	if errors.Is(err, fs.ErrNotExist) {
		return one, nil
	}
	if err != nil {
		return one, err
	}
	defer base.close()
	if one.Runs, err = waitingRuns(base); err != nil {
		return one, err
	}
	for _, run := range one.Runs {
		dir, err := base.sub(joinPath(waitingName, run))
		if err != nil {
			continue
		}
		if r, err := readWaiting(dir, run); err == nil {
			one.Bytes += r.Bytes
		}
		dir.close()
	}
	return one, nil
}
