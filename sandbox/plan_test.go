package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlan(t *testing.T) {
	spec := Spec{
		Home:   "/home/u",
		Limits: Limits{Disk: 1 << 30},
		Mounts: []Mount{
			{Kind: MountMask, Target: "/home/u/.pyenv/.npmrc"},
			{Kind: MountMask, Target: "/usr/secret"},
			{Kind: MountOverlay, Target: "/home/u/src/ws", Source: "/home/u/src/ws", Upper: "/layer/up", Work: "/layer/work"},
			{Kind: MountBind, Target: "/usr", Source: "/usr", Optional: true},
			{Kind: MountSymlink, Target: "/bin", Source: "usr/bin"},
			{Kind: MountFile, Target: "/etc/passwd", Content: []byte("x")},
			{Kind: MountBind, Target: "/home/u/.pyenv", Source: "/home/u/.pyenv"},
			{Kind: MountSymlink, Target: "/bin", Source: "usr/bin"},
			{Kind: MountBind, Target: "/home/u/src/ws/data", Source: "/data", Writable: true},
		},
	}
	want := []step{
		{Do: doScratch, Size: 1 << 30},
		{Do: doProc, Target: "/proc"},
		{Do: doDev, Target: "/dev"},
		{Do: doShow, Target: "/dev/shm", Source: "shm", Mode: 0o1777},
		{Do: doShow, Target: "/home", Source: "home", Mode: 0o755},
		{Do: doShow, Target: "/run", Source: "run", Mode: 0o755},
		{Do: doShow, Target: "/tmp", Source: "tmp", Mode: 0o1777},
		{Do: doShow, Target: "/var/tmp", Source: "var-tmp", Mode: 0o1777},
		{Do: doBind, Target: "/usr", Source: "/usr", Optional: true},
		{Do: doSymlink, Target: "/bin", Source: "usr/bin"},
		{Do: doFile, Target: "/etc/passwd", Content: "x"},
		{Do: doDir, Target: "/home/u", Mode: 0o755},
		{Do: doBind, Target: "/home/u/.pyenv", Source: "/home/u/.pyenv"},
		{Do: doOverlay, Target: "/home/u/src/ws", Source: "/home/u/src/ws", Upper: "/layer/up", Work: "/layer/work"},
		{Do: doBind, Target: "/home/u/src/ws/data", Source: "/data", Writable: true},
		{Do: doMask, Target: "/usr/secret"},
		{Do: doMask, Target: "/home/u/.pyenv/.npmrc"},
		{Do: doSeal, Target: "/"},
	}
	if diff := cmp.Diff(want, plan(spec)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

// stepsAt gives the steps of a plan that have to do with one target.
func stepsAt(s Spec, target string) []verb {
	var verbs []verb
	for _, st := range plan(s) {
		if string(st.Target) == target {
			verbs = append(verbs, st.Do)
		}
	}
	return verbs
}

func TestPlanHome(t *testing.T) {
	bind := func(target string) []Mount { return []Mount{{Kind: MountBind, Source: target, Target: target}} }
	for _, test := range []struct {
		name, home string
		mounts     []Mount
		want       []verb
	}{
		{"below a face", "/home/u", nil, []verb{doDir}},
		{"a face", "/tmp", nil, []verb{doShow}},
		{"on the root", "/root", nil, []verb{doShow}},
		{"the workspace", "/data/u", bind("/data/u"), []verb{doBind}},
		{"inside a mount", "/data/u/home", bind("/data/u"), nil},
		{"a mask is no mount", "/root", []Mount{{Kind: MountMask, Target: "/root"}}, []verb{doShow, doMask}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stepsAt(Spec{Home: test.home, Mounts: test.mounts}, test.home)); diff != "" {
				t.Errorf("steps at %q (-want +got):\n%s", test.home, diff)
			}
		})
	}
}

// Where the host's /home is a link, the run's is the same link, and not a directory in its place.
func TestPlanLinkInPlaceOfFace(t *testing.T) {
	s := Spec{Home: "/var/home/u", Mounts: []Mount{{Kind: MountSymlink, Source: "var/home", Target: "/home"}}}
	if diff := cmp.Diff([]verb{doSymlink}, stepsAt(s, "/home")); diff != "" {
		t.Errorf("steps at /home (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]verb{doShow}, stepsAt(s, "/var/home/u")); diff != "" {
		t.Errorf("steps at the home (-want +got):\n%s", diff)
	}
}

func TestSplit(t *testing.T) {
	spec := Spec{
		Home: "/home/u",
		Mounts: []Mount{
			{Kind: MountBind, Target: "/usr", Source: "/usr"},
			{Kind: MountBind, Target: "/home/u/.pyenv", Source: "/home/u/.pyenv"},
			{Kind: MountMask, Target: "/home/u/.pyenv/.npmrc"},
			{Kind: MountOverlay, Target: "/data/ws", Source: "/data/ws", Upper: "/up", Work: "/work"},
			{Kind: MountBind, Target: "/data/ws/tools", Source: "/opt/tools"},
			{Kind: MountBind, Target: "/srv/out", Source: "/srv/out", Writable: true},
		},
	}
	base, rest := split(plan(spec))
	own := []step{
		{Do: doOverlay, Target: "/data/ws", Source: "/data/ws", Upper: "/up", Work: "/work"},
		{Do: doBind, Target: "/srv/out", Source: "/srv/out", Writable: true},
		{Do: doBind, Target: "/data/ws/tools", Source: "/opt/tools"},
		{Do: doMask, Target: "/home/u/.pyenv/.npmrc"},
		{Do: doSeal, Target: "/"},
	}
	if diff := cmp.Diff(own, rest); diff != "" {
		t.Errorf("what is the run's own (-want +got):\n%s", diff)
	}
	if want := len(plan(spec)) - len(own); len(base) != want {
		t.Errorf("the base has %d steps, want the other %d: %v", len(base), want, base)
	}
}

// A run may go on from what was built for another one only if it then sees what its own plan would have built.
func TestRemaining(t *testing.T) {
	usr := Mount{Kind: MountBind, Target: "/usr", Source: "/usr"}
	opt := Mount{Kind: MountBind, Target: "/opt/a", Source: "/opt/a"}
	ws := Mount{Kind: MountOverlay, Target: "/ws", Source: "/ws", Upper: "/up", Work: "/work"}
	file := func(text string) Mount { return Mount{Kind: MountFile, Target: "/etc/f", Content: []byte(text)} }
	of := func(mounts ...Mount) Spec { return Spec{Home: "/home/u", Mounts: mounts} }
	tests := []struct {
		name       string
		built, run Spec
		ok         bool
		more       []wire // what is left beside the workspace and the seal
	}{
		{"the same", of(usr, ws), of(usr, ws), true, nil},
		{"one more", of(usr, ws), of(usr, opt, ws), true, []wire{"/opt/a"}},
		{"a file more", of(usr, ws), of(usr, ws, file("x")), true, []wire{"/etc/f"}},
		{"another workspace", of(usr, ws), of(usr, Mount{Kind: MountOverlay, Target: "/other", Source: "/ws"}), true, nil},
		{"one too many is there", of(usr, opt, ws), of(usr, ws), false, nil},
		{"another content is there", of(file("x"), ws), of(file("y"), ws), false, nil},
		{"another source is there", of(opt, ws), of(Mount{Kind: MountBind, Target: "/opt/a", Source: "/b"}, ws), false, nil},
		{"what is missing would cover what is there", of(opt, ws), of(Mount{Kind: MountBind, Target: "/opt", Source: "/opt"}, opt, ws), false, nil},
		{"the workspace would cover what is there", of(Mount{Kind: MountBind, Target: "/ws/x", Source: "/x"}), of(Mount{Kind: MountBind, Target: "/ws/x", Source: "/x"}, ws), false, nil},
		{"it was writable", of(ws), of(Mount{Kind: MountBind, Target: "/opt/a", Source: "/opt/a", Writable: true}, ws), true, []wire{"/opt/a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			built, _ := split(plan(test.built))
			rest, ok := remaining(plan(test.run), built)
			if ok != test.ok {
				t.Fatalf("fits: %v, want %v (left %v)", ok, test.ok, rest)
			}
			var more []wire
			for _, st := range rest {
				if st.Do != doOverlay && st.Do != doSeal {
					more = append(more, st.Target)
				}
			}
			if diff := cmp.Diff(test.more, more); ok && diff != "" {
				t.Errorf("left to the run (-want +got):\n%s", diff)
			}
		})
	}
}
