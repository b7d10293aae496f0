package sandbox

import (
	"os/exec"
	"slices"
	"testing"
)

// BenchmarkRun is a run of true from start to end, with the host's system and a workspace on an overlay.
func BenchmarkRun(b *testing.B) {
	for _, name := range backendNames {
		b.Run(name, func(b *testing.B) { benchmarkRun(b, newBackend(b, name)) })
	}
	b.Run("native, prepared", func(b *testing.B) {
		benchmarkRun(b, ahead{isolating(newBackend(b, "native"))})
	})
}

func benchmarkRun(b *testing.B, n Backend) {
	dir := b.TempDir()
	system := testSpec(b, "true")
	for b.Loop() {
		spec := system
		spec.Mounts = slices.Clone(system.Mounts)
		onOverlay(b, &spec, dir) // a layer is used once
		if exit, out := doRun(b, n, spec, ""); exit != (Exit{}) {
			b.Fatal(exit, out)
		}
	}
}

// BenchmarkBare is the same program without a sandbox, to compare with.
func BenchmarkBare(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/usr/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
