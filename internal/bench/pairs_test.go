package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTakeInTurn(t *testing.T) {
	var order []string
	ways := []*way{
		{name: "a", do: func() error { order = append(order, "a"); return nil }},
		{name: "absent", notRun: "not installed"},
		{name: "b", do: func() error { order = append(order, "b"); return nil }},
	}
	if err := (bench{}).takeInTurn(2, ways); err != nil {
		t.Fatal(err)
	}
	if len(order) != 2*(warmUps+2) || order[0] != "a" || order[1] != "b" || order[2] != "a" {
		t.Errorf("taken in the order %q", order)
	}
	if len(ways[0].times) != 2 || len(ways[1].times) != 0 || len(ways[2].times) != 2 {
		t.Errorf("times taken: %d, %d, %d", len(ways[0].times), len(ways[1].times), len(ways[2].times))
	}
}

func TestTakeInTurnStopsAtFailure(t *testing.T) {
	broken := errors.New("broken")
	err := (bench{}).takeInTurn(1, []*way{{name: "a", do: func() error { return broken }}})
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
}

func TestTable(t *testing.T) {
	const msec = time.Millisecond
	got := table("T", []*way{
		{name: "bare", times: []time.Duration{4 * msec, 2 * msec, 3 * msec, 90 * msec}},
		{name: "under bwrap", notRun: "not installed"},
		{name: "airlock", times: []time.Duration{9 * msec}},
	})
	want := `
### T

| | median | middle half | least | ratio |
|---|---:|---:|---:|---:|
| bare | 3.0 ms | 3.0 to 90.0 | 2.0 | 1.00 |
| under bwrap | not run: not installed | | | |
| airlock | 9.0 ms | 9.0 to 9.0 | 9.0 | 3.00 |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
