package tools

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxMessage is how long a line may be, in bytes.
const maxMessage = 16 << 20

// lineReader cuts its input into lines. It never holds more than max bytes of one.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), max: max}
}

// longLineError says that a line was too long. The reader is at the next one.
type longLineError struct {
	max int
	// id is the id of the message in the line, nil if it has none or it cannot be found; isRequest
	// is false if the line is a notification or an answer.
	id        json.RawMessage
	isRequest bool
}

func (e *longLineError) Error() string {
	return fmt.Sprintf("the message is longer than %s bytes", grouped(int64(e.max)))
}

// next returns the next line without its newline, which the last one need not have; the line is the
// caller's to keep. The error is a [*longLineError], after which next can be called again, or
// [io.EOF], or that of the input.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	var scan *idScanner // of a line that is too long
	for n := 0; ; {
		part, err := l.r.ReadSlice('\n')
		whole := err == nil
		if whole {
			part = part[:len(part)-1]
		}
		n += len(part)
		if scan == nil && n > l.max {
			scan = &idScanner{}
			scan.write(line)
			line = nil
		}
		if scan != nil {
			scan.write(part)
		} else {
			line = append(line, part...)
		}
		switch {
		case whole || errors.Is(err, io.EOF) && n > 0:
			if scan != nil {
				return nil, &longLineError{max: l.max, id: scan.id, isRequest: scan.isRequest()}
			}
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, err
		}
	}
}
