package overlay

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// maxIndex is the largest index of git that is read, in bytes. A larger one counts as changed.
const maxIndex = 128 << 20

// indexDigest is what an index of git says of its entries: their names, modes, objects and flags, and not
// what it remembers of the files' times and inodes, which any git status may renew.
type indexDigest [sha256.Size]byte

var errIndex = errors.New("not an index of git as it is known here")

// readIndex reads an index of the versions 2 to 4, of a repository of either hash. An index that is split,
// sparse, or corrupt is an error.
func readIndex(r io.Reader) (indexDigest, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxIndex+1))
	if err != nil {
		return indexDigest{}, err
	}
	if len(data) > maxIndex {
		return indexDigest{}, fmt.Errorf("an index of more than %d bytes", maxIndex)
	}
	for _, h := range []hash.Hash{sha1.New(), sha256.New()} {
		size := h.Size()
		if len(data) < 12+size {
			break
		}
		body, sum := data[:len(data)-size], data[len(data)-size:]
		// index.skipHash leaves zeros for the checksum.
		if h.Write(body); !bytes.Equal(h.Sum(nil), sum) && !bytes.Equal(sum, make([]byte, size)) {
			continue
		}
		if d, err := digestIndex(body, size); err == nil {
			return d, nil
		}
	}
	return indexDigest{}, errIndex
}

// digestIndex reads an index without its checksum.
func digestIndex(data []byte, hashSize int) (d indexDigest, err error) {
	version := binary.BigEndian.Uint32(data[4:])
	if string(data[:4]) != "DIRC" || version < 2 || version > 4 {
		return d, errIndex
	}
	sum := sha256.New()
	rest := data[12:]
	var name []byte
	for range binary.BigEndian.Uint32(data[8:]) {
		// Times, device and inode; mode; owner and size; the object; flags.
		fixed := 40 + hashSize + 2
		if len(rest) < fixed+2 {
			return d, errIndex
		}
		flags := binary.BigEndian.Uint16(rest[40+hashSize:])
		sum.Write(rest[24:28])
		sum.Write(rest[40 : 40+hashSize])
		sum.Write([]byte{byte(flags >> 8 & 0xf0)})
		if flags&0x4000 != 0 {
			if version < 3 {
				return d, errIndex
			}
			sum.Write(rest[fixed : fixed+2])
			fixed += 2
		}
		stripped, tail := 0, rest[fixed:]
		if version == 4 {
			var n int
			if stripped, n = offsetVarint(tail); n == 0 || stripped > len(name) {
				return d, errIndex
			}
			tail = tail[n:]
		} else {
			stripped = len(name)
		}
		end := bytes.IndexByte(tail, 0)
		if end < 0 {
			return d, errIndex
		}
		name = append(name[:len(name)-stripped], tail[:end]...)
		sum.Write(name)
		sum.Write([]byte{0})
		if version == 4 {
			rest = tail[end+1:]
			continue
		}
		padded := (fixed+end)/8*8 + 8
		if padded > len(rest) {
			return d, errIndex
		}
		rest = rest[padded:]
	}
	// Extensions whose name begins with a capital letter only save git time.
	for len(rest) > 0 {
		if len(rest) < 8 || rest[0] < 'A' || rest[0] > 'Z' {
			return d, errIndex
		}
		size := uint64(binary.BigEndian.Uint32(rest[4:])) + 8
		if size > uint64(len(rest)) {
			return d, errIndex
		}
		rest = rest[size:]
	}
	return indexDigest(sum.Sum(nil)), nil
}

// offsetVarint reads a number as git writes offsets; n is 0 where there is none.
func offsetVarint(b []byte) (value, n int) {
	for n < len(b) && n < 5 {
		c := b[n]
		value = value<<7 | int(c&0x7f)
		n++
		if c&0x80 == 0 {
			return value, n
		}
		value++
	}
	return 0, 0
}
