package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// following makes the Request of a call that names a run, from its arguments. None that belongs to a new run
// may be among them.
func following(tool string, raw json.RawMessage, id string, stop bool, offset, wait int64) (Request, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return Request{}, fmt.Errorf("bug: arguments that were read: %w", err)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains([]string{"run_id", "stop", "offset", "wait_seconds"}, name) && string(given[name]) != "null" {
			errs = append(errs, fmt.Errorf("%s: is given beside run_id; with it take only stop, offset and wait_seconds", name))
		}
	}
	if stop && offset >= 0 {
		errs = append(errs, errors.New("offset: is given beside stop; takes one of them"))
	}
	return Request{Tool: tool, RunID: id, Stop: stop, Offset: offset, Wait: time.Duration(wait) * time.Second}, problemsOf(errs...)
}

// checkNew reports what needs a run that goes on.
func checkNew(stop bool, offset int64) error {
	switch {
	case stop:
		return errors.New("stop: needs run_id, the run to end")
	case offset >= 0:
		return errors.New("offset: needs run_id, the run whose output to read")
	}
	return nil
}
