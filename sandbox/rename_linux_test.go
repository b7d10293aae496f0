package sandbox

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func addressOf(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) }

// growCases makes the trees of all cases.
func growCases(t *testing.T) string {
	dir := t.TempDir()
	t.Cleanup(func() { openUp(dir) })
	for i := range renameCases {
		d := filepath.Join(dir, caseDir(i))
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		growTree(t, d)
	}
	return dir
}

// Each case is done on a plain filesystem and in a run, and must end in the same errno and the same tree.
func TestRenameAsOnAPlainFilesystem(t *testing.T) { onEach(t, testRenameAsOnAPlainFilesystem) }

func testRenameAsOnAPlainFilesystem(t *testing.T, n Backend) {
	model, ws := growCases(t), growCases(t)

	cmd := exec.Command("/proc/self/exe", "rename-cases", model)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the model: %v, %s", err, out)
	}
	want := make(map[string]renameResult)
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}

	spec := testSpec(t, "/probe", "rename-cases", ws)
	upper := onOverlay(t, &spec, ws)
	t.Cleanup(func() { openUp(upper) }) // before its removal
	exit, inside := doRun(t, n, spec, "")
	if exit != (Exit{}) {
		t.Fatalf("%+v, %s", exit, inside)
	}
	got := make(map[string]renameResult)
	if err := json.Unmarshal([]byte(inside), &got); err != nil {
		t.Fatal(err)
	}
	if len(want) != len(renameCases) {
		t.Errorf("%d results of %d cases: two have one name", len(want), len(renameCases))
	}
	for _, c := range renameCases {
		if diff := cmp.Diff(want[c.name], got[c.name]); diff != "" {
			t.Errorf("%s (-plain +run):\n%s", c.name, diff)
		}
	}
}
