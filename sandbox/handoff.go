package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// The server and the init process of a run talk over one stream socket, descriptor 3 of init:
//
//	server                                            init, PID 1 of the new namespaces
//	  │  has the starter clone it, and execute          │
//	  │  the sealed binary (starter_linux.go) ────────▶ │  waits; touches nothing
//	  │  puts init's pid into the run's cgroup          │
//	  │                                                 │
//	  │ ── base {steps, hostname, egress, shell} ─────▶ │  builds root, /proc, network; sends the
//	  │                                                 │  sockets of its egress on descriptor 6 (and
//	  │                                                 │  more, if asked: egress_listen_linux.go);
//	  │                                                 │  starts a shell, if told
//	  │                                                 │  (shell_start_linux.go)
//	  │                                                 │
//	  │ ◀─ failed {op, path, errno, text, hint} ─────── │  (and exits), or
//	  │ ◀─ built ────────────────────────────────────── │  what needs no run stands, and waits for one:
//	  ┆                                                 ┆  see reserve_linux.go
//	  │ ── config {steps, argv, env, dir, limits} ────▶ │  builds the rest, leaves the host's root,
//	  │                                                 │  drops what rights the payload's thread has
//	  │                                                 │  left, and forks it (payload_linux.go); or has
//	  │                                                 │  the shell take the command
//	  │ ◀─ failed {…}  or  status {code, start_error} ─ │  (and exits), or
//	  │ ◀─ started ──────────────────────────────────── │  the payload was executed
//	  │ ◀─ scratch {bytes} ──────────────────────────── │  …reaps; waits for the payload; looks after
//	  ┆                                                 ┆  its limits (watch_linux.go)
//	  │                                                 │  kills and reaps what is left; ends a move
//	  │ ◀─ status {code | signal, ended} ────────────── │  nothing of the run is left but init
//	  │  closes the socket to take the sandbox down ──▶ │  exits
//
// An init that bubblewrap executes says hello before all this: see bubblewrap_start_linux.go.
//
// Each message is its length (4 bytes, big endian) and a strict JSON object. The server writes twice;
// afterwards the stream ends when it lets go, or dies, however; init then exits, which makes
// the kernel kill everything in the namespace. Nothing on this socket comes from the payload: it never
// holds a descriptor of it, and init can't be traced.

// maxMessage bounds a message in bytes: more than the kernel takes as arguments and environment of one
// exec (a quarter of the stack limit, 2 MiB by default), escaped, and a large list of mounts.
const maxMessage = 16 << 20

// usualMessage is a size in bytes that few messages exceed.
const usualMessage = 16 << 10

// message is everything that crosses the socket: exactly one field is set.
type message struct {
	Base    *base       `json:"base,omitempty"`
	Config  *config     `json:"config,omitempty"`
	Failed  *failure    `json:"failed,omitempty"`
	Built   *struct{}   `json:"built,omitempty"`
	Started *struct{}   `json:"started,omitempty"`
	Scratch *scratchUse `json:"scratch,omitempty"`
	Status  *status     `json:"status,omitempty"`
}

// base is what many runs have alike, and what can be built before there is one.
type base struct {
	Steps    []step  `json:"steps"`
	Hostname wire    `json:"hostname"`
	Egress   *Egress `json:"egress,omitempty"`
	Shell    *bash   `json:"shell,omitempty"` // to be started ahead
}

// bash is one that is started before there is a command for it: see startedShell.
type bash struct {
	Path wire   `json:"path"`
	Env  []wire `json:"env"`
}

// config is the rest that init needs to know. It learns no more: its own environment is initEnv.
type config struct {
	Steps  []step `json:"steps"` // those after the base's
	Argv   []wire `json:"argv"`
	Env    []wire `json:"env"`
	Dir    wire   `json:"dir"`
	Limits Limits `json:"limits"`
	Stdin  bool   `json:"stdin"` // the payload reads what comes on descriptor 5; else /dev/null
}

// failure is a SetupError on the wire.
type failure struct {
	Op    string `json:"op"`
	Path  wire   `json:"path,omitempty"`
	Errno int    `json:"errno,omitempty"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

// status is how the payload's main process ended.
type status struct {
	Code       int    `json:"code"`
	Signal     int    `json:"signal,omitempty"`
	StartError string `json:"start_error,omitempty"`
	Ended      int    `json:"ended,omitempty"`
	Torn       bool   `json:"torn,omitempty"`

	Found findings `json:"found"`
}

// scratchUse says what the private tmpfs of the run holds.
type scratchUse struct {
	Bytes int64 `json:"bytes"`
}

// findings are what init has seen of the run's limits, which no cgroup holds or reports, and of its network.
type findings struct {
	Scratch   int64 `json:"scratch,omitempty"`   // bytes of the private tmpfs at the end
	Memory    bool  `json:"memory,omitempty"`    // the run was beyond its limit and was ended
	Floor     bool  `json:"floor,omitempty"`     // the host had little memory left, and the run was ended
	Processes bool  `json:"processes,omitempty"` // the run had all the processes that it may have
	Unrouted  bool  `json:"unrouted,omitempty"`  // see Exit
}

func (f *failure) setupError() *SetupError {
	e := &SetupError{Op: f.Op, Path: string(f.Path), Err: errors.New(f.Text), Hint: f.Hint}
	if f.Errno != 0 {
		e.Err = syscall.Errno(f.Errno)
	}
	return e
}

func newFailure(err error) *failure {
	e := new(SetupError)
	if !errors.As(err, &e) {
		e = &SetupError{Op: "build the sandbox", Err: err}
	}
	f := &failure{Op: e.Op, Path: wire(e.Path), Text: e.Err.Error(), Hint: e.Hint}
	// Only a bare number is sent as one: text wrapped around it says more than it does.
	if n, ok := e.Err.(syscall.Errno); ok { //nolint:errorlint // see above
		f.Errno = int(n)
	}
	return f
}

// send writes one message.
func send(w io.Writer, m message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("the run's description takes %d bytes; %d is the most", len(body), maxMessage)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// receive reads one message. A stream that ends before one begins is io.EOF.
func receive(r io.Reader) (message, error) {
	var m message
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return m, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxMessage {
		return m, fmt.Errorf("hand-off: a message of %d bytes; %d is the most", size, maxMessage)
	}
	// The buffer grows with what comes, not with what was announced, beyond what most messages take.
	var body bytes.Buffer
	body.Grow(int(min(size, usualMessage)) + bytes.MinRead)
	if _, err := io.CopyN(&body, r, int64(size)); err != nil {
		return m, fmt.Errorf("hand-off: a message was cut off: %w", io.ErrUnexpectedEOF)
	}
	return decode(body.Bytes())
}

// decode reads the body of a message and refuses what send would not have written.
func decode(body []byte) (message, error) {
	var m message
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return message{}, fmt.Errorf("hand-off: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return message{}, errors.New("hand-off: a message is followed by more")
	}
	set := 0
	for _, is := range []bool{m.Base != nil, m.Config != nil, m.Failed != nil, m.Built != nil, m.Started != nil, m.Scratch != nil, m.Status != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return message{}, fmt.Errorf("hand-off: a message holds %d things, not one", set)
	}
	return m, nil
}
