package tools

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxKeptText is how much of one run's output is kept in a file, in bytes.
const maxKeptText = 64 << 20

// keptText is the whole text of an output that is too long for its Output to keep in memory. It is in a file,
// which is made when the first byte would be dropped.
type keptText struct {
	make func() (*os.File, error) // nil keeps nothing
	file *os.File
	size int64
	err  error // why there is no more
}

// add adds text that became final. before gives what came before it, all of it, and is called once.
func (k *keptText) add(text []byte, before func() []byte) {
	if k.make == nil || k.err != nil {
		return
	}
	if k.file == nil {
		if k.file, k.err = k.make(); k.err != nil {
			return
		}
		text = append(before(), text...)
	}
	if room := maxKeptText - k.size; int64(len(text)) > room {
		text = text[:room]
		k.err = fmt.Errorf("of one run %s bytes of output are kept", grouped(maxKeptText))
	}
	n, err := k.file.WriteAt(text, k.size)
	k.size += int64(n)
	if err != nil {
		k.err = fmt.Errorf("the output is kept up to here only: %w", err)
	}
}

// read gives at most n bytes from an offset.
func (k *keptText) read(offset int64, n int) ([]byte, error) {
	if k.file == nil {
		return nil, fmt.Errorf("this part of the output is not kept: %w", cmp.Or(k.err, errors.ErrUnsupported))
	}
	if offset >= k.size && k.err != nil {
		return nil, k.err
	}
	text := make([]byte, max(0, min(int64(n), k.size-offset)))
	got, err := k.file.ReadAt(text, offset)
	if err == io.EOF {
		err = nil
	}
	return text[:got], err
}

// errDropped is why a text is not there any more.
var errDropped = errors.New("it made room for later runs' output")

func (k *keptText) close() {
	if k.file != nil {
		k.file.Close()
		os.Remove(k.file.Name())
		k.file, k.size, k.err = nil, 0, errDropped
	}
}

// KeepIn has the whole text kept, once it is longer than a result shows, in a file that make makes then. At most
// 64 MiB are. Without it only the beginning and the end of a long output are kept. Close removes the file.
func (o *Output) KeepIn(make func() (*os.File, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole.make = make
}

// File names the file of KeepIn, "" if there is none.
func (o *Output) File() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.whole.file == nil {
		return ""
	}
	return o.whole.file.Name()
}

// Kept is the size of that file in bytes.
func (o *Output) Kept() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.whole.size
}

// Close removes that file.
func (o *Output) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole.close()
}

// From gives the text from an offset on, whole characters and at most as much as a result shows, the offset to
// read on from, and how many bytes there are. The line that is being written counts only if ended says that
// nothing more comes. The error is for a reader: it says why what was asked for is not there.
func (o *Output) From(offset int64, ended bool) (text string, next, total int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var pending []byte
	if ended {
		pending = o.clean.pending()
	}
	total = o.total + int64(len(pending))
	b, err := o.from(offset, int(o.limit))
	if at := offset + int64(len(b)); err == nil && at >= o.total && at < total {
		b = append(b, pending[at-o.total:]...)
		b = b[:min(len(b), int(o.limit))]
	}
	next = offset + int64(len(b))
	if next < total {
		whole := wholeEnd(b)
		next -= int64(len(b) - len(whole))
		b = whole
	}
	return string(wholeStart(b)), next, total, err
}

func (o *Output) from(offset int64, n int) ([]byte, error) {
	if offset >= o.total {
		return nil, nil
	}
	if o.total <= int64(o.limit) {
		all := append(bytes.Clone(o.head), o.tail.bytes()...)
		return all[offset:min(int64(len(all)), offset+int64(n))], nil
	}
	return o.whole.read(offset, n)
}

// Since is Snapshot of what came after the first seen bytes of final text. It returns how many there are by now.
func (o *Output) Since(seen int64) (text string, dropped, now int64) {
	if seen == 0 {
		text, dropped = o.Snapshot()
		return text, dropped, o.length()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	pending := o.clean.pending()
	size := o.total - seen + int64(len(pending))
	n := int(min(size, int64(o.limit)))
	if size > int64(o.limit) {
		n = o.headSize()
	}
	head, err := o.from(seen, n)
	if err != nil {
		head = nil
	}
	if size <= int64(o.limit) && err == nil {
		return string(head) + string(pending), 0, o.total
	}
	tail := append(o.tail.bytes(), pending...)
	tail = tail[max(0, int64(len(tail))-size):]
	text, dropped = o.clipped(head, tail, size)
	return text, dropped, o.total
}

func (o *Output) length() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}
