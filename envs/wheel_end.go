package envs

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The directory of a zip archive stands at its end, and the last record says where it begins. Where that record
// contradicts itself, or there are two of them, readers disagree: Python counts back from the end and takes the record of
// zip64 whenever there is one, Go takes the place that is named and that record only where it is needed. An archive could
// so have one content for those who judge it and another for the installer.

const (
	endSignature     = "PK\x05\x06"
	end64Signature   = "PK\x06\x06"
	locatorSignature = "PK\x06\x07"

	endLen     = 22
	end64Len   = 56
	locatorLen = 20
	entryLen   = 46 // of a member in the directory, without its name, extra fields and comment
)

var errEnd = errors.New("its end can be read in several ways")

// directorySize gives the length of an archive's directory in bytes. The error is errEnd where not every reader finds
// the same one: it has to end where the records of the end begin, and these where the archive ends.
func directorySize(r io.ReaderAt, size int64) (int64, error) {
	tail := make([]byte, min(size, endLen+1<<16-1+end64Len+locatorLen))
	from := size - int64(len(tail))
	if _, err := r.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	i := bytes.LastIndex(tail, []byte(endSignature))
	if i < 0 || len(tail)-i < endLen {
		return 0, zip.ErrFormat
	}
	le := binary.LittleEndian
	end := tail[i:]
	if int(le.Uint16(end[20:])) != len(end)-endLen {
		return 0, errEnd
	}
	length, offset := uint64(le.Uint32(end[12:])), uint64(le.Uint32(end[16:]))
	if i >= locatorLen && string(tail[i-locatorLen:i-locatorLen+4]) == locatorSignature {
		locator := tail[i-locatorLen : i]
		if i -= locatorLen + end64Len; i < 0 || string(tail[i:i+4]) != end64Signature {
			return 0, errEnd
		}
		end64 := tail[i : i+end64Len]
		length64, offset64 := le.Uint64(end64[40:]), le.Uint64(end64[48:])
		switch {
		case le.Uint64(locator[8:]) != uint64(from)+uint64(i), le.Uint64(end64[4:]) != end64Len-12,
			length != 1<<32-1 && length != length64, offset != 1<<32-1 && offset != offset64:
			return 0, errEnd
		}
		length, offset = length64, offset64
	}
	if at := uint64(from) + uint64(i); length > at || offset != at-length {
		return 0, errEnd
	}
	return int64(length), nil
}

// checkDirectory reports an archive whose members, as they were read, are not what its directory has room for.
func checkDirectory(z *zip.Reader, length int64) error {
	for _, f := range z.File {
		length -= int64(entryLen + len(f.Name) + len(f.Extra) + len(f.Comment))
	}
	if length != 0 {
		return fmt.Errorf("%w: its directory has another length than its members", errEnd)
	}
	return nil
}
