package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	events := strings.Join([]string{
		`{"Action":"start","Package":"m/p"}`,
		`{"Action":"output","Package":"m/p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"m/p","Test":"TestA","Output":"    a_test.go:3: no user namespaces\n"}`,
		`{"Action":"output","Package":"m/p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`,
		`{"Action":"skip","Package":"m/p","Test":"TestA"}`,
		`{"Action":"output","Package":"m/p","Test":"TestB","Output":"    b_test.go:9: chatter\n"}`,
		`{"Action":"pass","Package":"m/p","Test":"TestB/slow","Elapsed":12.3}`,
		`{"Action":"pass","Package":"m/p","Test":"TestB","Elapsed":12.4}`,
		`{"Action":"output","Package":"m/p","Test":"TestC","Output":"    c_test.go:7: wrong\n"}`,
		`{"Action":"output","Package":"m/p","Test":"TestC","Output":"--- FAIL: TestC (0.00s)\n"}`,
		`{"Action":"fail","Package":"m/p","Test":"TestC"}`,
		`{"Action":"skip","Package":"m/p","Test":"TestD"}`,
		`{"Action":"output","Package":"m/p","Test":"TestChild","Output":"    d_test.go:4: is run by other tests only\n"}`,
		`{"Action":"skip","Package":"m/p","Test":"TestChild"}`,
		`{"Action":"output","Package":"m/p","Test":"TestE","Output":"killed in the middle\n"}`,
		`{"Action":"output","Package":"m/p","Output":"FAIL\tm/p\t0.1s\n"}`,
		`{"Action":"fail","Package":"m/p"}`,
		`go: a line that is not an event`,
		``,
	}, "\n")
	var out strings.Builder
	skipped, slow, err := report(strings.NewReader(events), &out)
	if err != nil {
		t.Fatal(err)
	}
	wantOut := "    c_test.go:7: wrong\n--- FAIL: TestC (0.00s)\nFAIL\tm/p\t0.1s\nkilled in the middle\ngo: a line that is not an event\n"
	if diff := cmp.Diff(wantOut, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m/p TestB: 12 s"}, slow); diff != "" {
		t.Errorf("slow (-want +got):\n%s", diff)
	}
	wantSkipped := []string{"m/p TestA: a_test.go:3: no user namespaces", "m/p TestD: no reason given"}
	if diff := cmp.Diff(wantSkipped, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}
