// Package sandboxtest attacks a [airlock/sandbox.Backend] from inside, and judges what comes of it. Every backend
// that confines its runs must pass it, as root and as an ordinary user.
//
//	func TestMain(m *testing.M) {
//		sandboxtest.Main()
//		os.Exit(m.Run())
//	}
//
//	func TestNative(t *testing.T) {
//		backend, err := sandbox.NewNative()
//		…
//		sandboxtest.Run(t, backend, sandboxtest.Options{})
//	}
//
// # What it does
//
// [Run] puts up a host worth attacking: secrets below home and elsewhere, another workspace, a server with a secret in
// its environment and an open descriptor of one, other processes, listeners under the names that programs
// use (docker.sock, X11, D-Bus, abstract names), shared memory. Then it has one run of the backend make
// every attempt of a table, each in a process of its own, by system calls and not by programs that could
// be missing. Each attempt ends in an errno, or in words where there is none ("unharmed").
//
// A probe passes if the attempt in the run got what the table says, and the same attempt succeeded outside:
// its control. Without a control a probe shows nothing, since what it tries might never work. Controls are made, by
// what they need and could harm:
//
//   - on the host, as the user of the test;
//   - on the host, if that user is root. An ordinary user's probe then has no control, which is a stated reason;
//   - apart: in namespaces that are thrown away, with every capability over them, where a success
//     harms nothing;
//   - nowhere, for a stated reason.
//
// Where a success would harm the host, the control gives arguments that the kernel refuses after it has asked for the right,
// so that its errno (EFAULT, EINVAL, …) tells that it got that far.
//
// What a control lacks on this host is told to [Options].Lacks, which decides whether it is a failure.
//
// # Limitations
//
//   - It attacks walls and not resources: limits have tests of their own.
//   - It knows what its authors know. A backend that passes has passed that, on this kernel.
package sandboxtest
