package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"airlock/internal/units"
)

// shellArgs gives the request of a run_shell with these arguments, as JSON.
func shellWith(id, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_shell","arguments":{%s}}}`, id, args)
}

// answer is the next line, which answers a call.
func (c *client) answer() reply {
	c.t.Helper()
	r := decode(c.t, c.next())
	if r.Result == nil {
		c.t.Fatalf("no result: %+v", r)
	}
	return r
}

// goesOn checks that a call was answered while its run goes on, and returns the run.
func (c *client) goesOn(r reply) string {
	c.t.Helper()
	id, _ := r.Result.StructuredContent["run_id"].(string)
	if r.Result.IsError || r.Result.StructuredContent["status"] != "running" || id == "" || !strings.Contains(r.text(), "running run_id="+id+"\n") {
		c.t.Fatalf("not running: %s", r.text())
	}
	return id
}

func TestRunThatOutlivesItsCall(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shellWith("1", `"command":"print","wait_seconds":0`))
	id := c.goesOn(c.answer())
	<-f.busy
	// It holds up nobody.
	c.send(shell("2", "echo next"))
	if r := c.answer(); !strings.HasPrefix(r.text(), "next\nexit=0") {
		t.Errorf("the next call gives %q", r.text())
	}
	f.say("one\ntwo")
	look := fmt.Sprintf(`"run_id":%q,"wait_seconds":0`, id)
	c.send(shellWith("3", look))
	if r := c.answer(); c.goesOn(r) != id || !strings.HasPrefix(r.text(), "one\ntwo\nexit=running\nrunning run_id="+id) {
		t.Errorf("a look gives %q", r.text())
	}
	f.say(" and more\nthree\n")
	c.send(shellWith("4", look))
	if r := c.answer(); !strings.HasPrefix(r.text(), "two and more\nthree\nexit=running\n") {
		t.Errorf("a second look gives %q", r.text())
	}
	// One call waits for the end.
	c.send(shellWith("5", fmt.Sprintf(`"run_id":%q`, id)))
	f.say("four\n")
	f.print <- "end"
	if r := c.answer(); !strings.HasPrefix(r.text(), "four\nexit=0\n") || r.Result.StructuredContent["run_id"] != id {
		t.Errorf("the end is %q", r.text())
	}
	// The result is kept, and so is the output.
	c.send(shellWith("6", look))
	if r := c.answer(); !strings.HasPrefix(r.text(), "exit=0\n") || !strings.Contains(r.text(), "offset=0") {
		t.Errorf("a look afterwards gives %q", r.text())
	}
	c.send(shellWith("7", fmt.Sprintf(`"run_id":%q,"offset":4`, id)))
	if r := c.answer(); !strings.HasPrefix(r.text(), "two and more\nthree\nfour\nexit=0\n") {
		t.Errorf("the output from 4 on is %q", r.text())
	}
	c.send(shellWith("8", `"run_id":"nix"`))
	if r := c.answer(); !r.Result.IsError || !strings.Contains(r.text(), `error: run_id: there is no run "nix" in this conversation; there are `) {
		t.Errorf("a run that is none gives %q", r.text())
	}
}

func TestStop(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shellWith("1", `"command":"block","wait_seconds":0`))
	id := c.goesOn(c.answer())
	<-f.busy
	stop := fmt.Sprintf(`"run_id":%q,"stop":true`, id)
	c.send(shellWith("2", stop))
	if r := c.answer(); !r.Result.IsError || !strings.HasPrefix(r.text(), "exit=cancelled\nworkspace: discarded 1 change (cancelled)") {
		t.Errorf("stop gives %q", r.text())
	}
	c.send(shellWith("3", stop))
	if r := c.answer(); !strings.Contains(r.text(), "note: the run had ended before") {
		t.Errorf("a second stop gives %q", r.text())
	}
}

// A call that waits for its turn longer than it would wait for its run is answered, and keeps its turn.
func TestRunThatIsQueued(t *testing.T) {
	f := newFakeRunner()
	o := testOptions(f)
	o.Policy.Limits.Wait = units.Duration(time.Minute)
	c := connect(t, New(o))
	c.send(shell("1", "block"))
	<-f.busy
	c.send(shellWith("2", `"command":"echo second","wait_seconds":0`))
	r := c.answer()
	id := c.goesOn(r)
	if !strings.Contains(r.text(), "note: the run has not begun") {
		t.Errorf("it does not say that it waits: %q", r.text())
	}
	c.send(shell("3", "echo third"))
	c.send(cancelled("1"))
	if r := c.answer(); string(r.ID) != "3" || !strings.HasPrefix(r.text(), "third\n") {
		t.Errorf("%s: %q", r.ID, r.text())
	}
	c.send(shellWith("4", fmt.Sprintf(`"run_id":%q`, id)))
	if r := c.answer(); !strings.HasPrefix(r.text(), "second\nexit=0") {
		t.Errorf("the queued run gives %q", r.text())
	}
	if started, _ := f.seen(); !slices.Equal(started, []string{"block", "echo second", "echo third"}) {
		t.Errorf("ran %q", started)
	}
}

func TestCancelWhileWaitingOn(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shellWith("1", `"command":"block","wait_seconds":0`))
	id := c.goesOn(c.answer())
	<-f.busy
	c.send(shellWith("2", fmt.Sprintf(`"run_id":%q`, id)) + "\n" + cancelled("2"))
	c.send(shellWith("3", fmt.Sprintf(`"run_id":%q`, id)))
	if r := c.answer(); string(r.ID) != "3" || !strings.HasPrefix(r.text(), "exit=cancelled\n") {
		t.Errorf("%s: %q", r.ID, r.text())
	}
}

// limits.runs bounds the runs that go on, also those that no call waits for.
func TestRunsAtOnce(t *testing.T) {
	f := newFakeRunner()
	o := testOptions(f)
	o.Policy.Limits.Runs = 2
	c := connect(t, New(o))
	var ids []string
	for i := range 3 {
		c.send(shellWith(fmt.Sprint(i), `"command":"block","wait_seconds":0`))
		ids = append(ids, c.goesOn(c.answer()))
	}
	<-f.busy
	<-f.busy
	select {
	case <-f.busy:
		t.Error("three at once")
	case <-time.After(50 * time.Millisecond):
	}
	c.send(shellWith("4", fmt.Sprintf(`"run_id":%q,"stop":true`, ids[0])))
	c.answer()
	<-f.busy
}

func TestInputEndsWhileRunsGoOn(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	c.send(shellWith("1", `"command":"block","wait_seconds":0`))
	c.goesOn(c.answer())
	<-f.busy
	begin := time.Now()
	if lines, err := c.rest(); err != nil || len(lines) > 0 {
		t.Errorf("%q, %v", lines, err)
	}
	if _, ended := f.seen(); len(ended) != 1 || f.closed != 1 || time.Since(begin) > 3*time.Second {
		t.Errorf("ended %q, closed %d times, after %s", ended, f.closed, time.Since(begin))
	}
}

func TestProgressOfARunThatGoesOn(t *testing.T) {
	f := newFakeRunner()
	s := New(testOptions(f))
	s.every = 0
	c := connect(t, s)
	c.send(shellWith("1", `"command":"print","wait_seconds":0`))
	id := c.goesOn(c.answer())
	<-f.busy
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_shell","arguments":{"run_id":%q},"_meta":{"progressToken":"p"}}}`, id))
	f.say("half\n") // the call may not wait yet: then it is told at once when it does
	if r := decode(t, c.next()); r.Method != "notifications/progress" {
		t.Errorf("no progress: %+v", r)
	}
	f.print <- "end"
	for {
		if r := decode(t, c.next()); r.Method == "" {
			if !strings.HasPrefix(r.text(), "half\nexit=0\n") {
				t.Errorf("the end is %q", r.text())
			}
			return
		}
	}
}

// What is too long for a result is in a file, by offset, and through looks, and the file goes with the
// conversation.
func TestLongOutputIsKept(t *testing.T) {
	dir := t.TempDir()
	f := newFakeRunner()
	o := testOptions(f)
	o.OutputFile = func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	c := connect(t, New(o))
	c.send(shellWith("1", `"command":"print","wait_seconds":0`))
	id := c.goesOn(c.answer())
	<-f.busy
	var whole strings.Builder
	for i := range 300 {
		line := fmt.Sprintf("line %d – ü\n", i)
		whole.WriteString(line)
		f.say(line)
	}
	f.say("last")
	whole.WriteString("last")
	f.print <- "end"
	c.send(shellWith("2", fmt.Sprintf(`"run_id":%q`, id)))
	r := c.answer()
	file, _ := r.Result.StructuredContent["output_file"].(string)
	if b, err := os.ReadFile(file); err != nil || string(b)+"last" != whole.String() {
		t.Errorf("%s has %d bytes of %d, %v", file, len(b), whole.Len(), err)
	}
	if !strings.Contains(r.text(), "bytes dropped") || !strings.Contains(r.text(), "offset=0") {
		t.Errorf("the result is %q", r.text())
	}
	var read strings.Builder
	for offset := 0; offset < whole.Len(); {
		c.send(shellWith("3", fmt.Sprintf(`"run_id":%q,"offset":%d`, id, offset)))
		text, _ := c.answer().Result.StructuredContent["output"].(string)
		if text == "" {
			t.Fatalf("nothing at %d", offset)
		}
		read.WriteString(text)
		offset += len(text)
	}
	if read.String() != whole.String() {
		t.Errorf("read %q", read.String())
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"airlock://runs/%s/output"}}`, id))
	var resource struct {
		Result struct{ Contents []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(c.next()), &resource); err != nil || len(resource.Result.Contents) != 1 || resource.Result.Contents[0].Text != whole.String() {
		t.Errorf("the resource is %+v, %v", resource, err)
	}
	c.send(`{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"airlock://runs/nix/output"}}`)
	if r := decode(t, c.next()); r.Error == nil || !strings.Contains(r.Error.Message, `there is no run "nix"`) {
		t.Errorf("a run that is none: %+v", r)
	}
	if _, err := c.rest(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Who stops a run from outside of the conversation is named to the model.
func TestUserStops(t *testing.T) {
	f := newFakeRunner()
	s := New(testOptions(f))
	c := connect(t, s)
	c.send(shell("1", "block"))
	<-f.busy
	c.send(shell("2", "echo waits"))
	var runs []RunInfo
	for end := time.Now().Add(5 * time.Second); len(runs) < 2 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		runs = s.Runs()
	}
	if len(runs) != 2 || runs[0].What != "block" || runs[0].Queued || !runs[1].Queued {
		t.Fatalf("runs are %+v", runs)
	}
	if known, err := s.Stop(t.Context(), "none"); known || err != nil {
		t.Errorf("stop of none: %v, %v", known, err)
	}
	if known, err := s.Stop(t.Context(), runs[0].ID); !known || err != nil {
		t.Errorf("stop: %v, %v", known, err)
	}
	if r := c.answer(); !strings.Contains(r.text(), "exit=cancelled") || !strings.Contains(r.text(), "note: the user stopped the run (airlock stop)") {
		t.Errorf("the call is answered with %q", r.text())
	}
	c.answer()
	if runs := s.Runs(); len(runs) > 0 {
		t.Errorf("left: %+v", runs)
	}
}

func TestRunsThatWaitAreBounded(t *testing.T) {
	f := newFakeRunner()
	c := connect(t, New(testOptions(f)))
	for i := range maxWaiting {
		c.send(shellWith(fmt.Sprint(i), `"command":"block","wait_seconds":0`))
		c.goesOn(c.answer())
	}
	c.send(shellWith("900", `"command":"echo one more"`))
	if r := c.answer(); !r.Result.IsError || !strings.Contains(r.text(), "error: 256 runs of this conversation go on or wait") {
		t.Errorf("one more is answered with %q", r.text())
	}
}
