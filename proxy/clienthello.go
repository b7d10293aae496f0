package proxy

import (
	"encoding/binary"
	"errors"
)

// The TLS that is read here is the first message of a client, in clear by its nature (RFC 8446,
// sections 4.1.2 and 5.1; RFC 6066, section 3).
const (
	recordChange     = 20
	recordAlert      = 21
	recordHandshake  = 22
	messageHello     = 1
	extensionName    = 0
	maxHello         = 64 << 10
	recordHeaderSize = 5
)

// errIncomplete says that more bytes are needed.
var errIncomplete = errors.New("incomplete")

// errNotHello says that a client began with TLS and went on with something else.
var errNotHello = errors.New("the first TLS message is not a ClientHello that can be read")

// serverName gives the server name that the first bytes of a client ask for, or "" if they are no TLS or
// name none. errIncomplete asks for more of them.
func serverName(b []byte) (string, error) {
	if len(b) == 0 {
		return "", errIncomplete
	}
	if b[0] != recordHandshake || len(b) > 1 && b[1] != 3 {
		return "", wrapped(b)
	}
	hello, err := handshake(b)
	if err != nil {
		return "", err
	}
	return nameIn(hello)
}

// wrapped refuses what is no ClientHello by its first bytes, while servers find one in it all the same: behind an alert that is only
// a warning or a change of ciphers, or in a record of a version that there is not (Go's takes all below 16). Six bytes tell it
// from other protocols: such a record's content begins with a 1, the level of a warning, the one byte of a change, or the
// type of the message.
func wrapped(b []byte) error {
	for i, fits := range []func(c byte) bool{
		func(c byte) bool { return c == recordChange || c == recordAlert || c == recordHandshake },
		func(major byte) bool { return major < 16 },
		func(byte) bool { return true },
		func(size byte) bool { return size == 0 || b[0] == recordHandshake },
		func(size byte) bool { return size == 1 || size == 2 || b[0] == recordHandshake },
		func(content byte) bool { return content == 1 },
	} {
		if i == len(b) {
			return errIncomplete
		}
		if !fits(b[i]) {
			return nil
		}
	}
	return errNotHello
}

// handshake puts the first message together from the records that hold it.
func handshake(b []byte) ([]byte, error) {
	var message []byte
	for {
		if len(b) < recordHeaderSize {
			return nil, errIncomplete
		}
		size := int(binary.BigEndian.Uint16(b[3:]))
		if b[0] != recordHandshake || b[1] != 3 || size == 0 {
			return nil, errNotHello
		}
		record := b[recordHeaderSize:]
		whole := len(record) >= size
		if whole {
			record, b = record[:size], record[size:]
		}
		message = append(message, record...)
		if len(message) >= 4 {
			length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			if message[0] != messageHello || length > maxHello {
				return nil, errNotHello
			}
			if len(message) >= 4+length {
				return message[4 : 4+length], nil
			}
		}
		if !whole {
			return nil, errIncomplete
		}
	}
}

// nameIn finds the host name in a ClientHello.
func nameIn(hello []byte) (string, error) {
	r := reader{hello}
	r.skip(2 + 32)           // version, random
	r.skip(int(r.uint(1)))   // session
	r.skip(int(r.uint(2)))   // cipher suites
	r.skip(int(r.uint(1)))   // compression methods
	if r.ok() && r.empty() { // no extensions, as in old versions
		return "", nil
	}
	extensions := reader{r.take(int(r.uint(2)))}
	if !r.ok() || !r.empty() {
		return "", errNotHello
	}
	name, found := "", false
	for extensions.ok() && !extensions.empty() {
		kind := extensions.uint(2)
		body := reader{extensions.take(int(extensions.uint(2)))}
		if kind != extensionName || !extensions.ok() {
			continue
		}
		list := reader{body.take(int(body.uint(2)))}
		if found || !body.ok() || !body.empty() || list.empty() {
			return "", errNotHello
		}
		for list.ok() && !list.empty() {
			kind := list.uint(1)
			value := list.take(int(list.uint(2)))
			if found || kind != 0 || !list.ok() || len(value) == 0 {
				return "", errNotHello // there is one kind of name, and one name of a kind
			}
			name, found = string(value), true
		}
	}
	if !extensions.ok() {
		return "", errNotHello
	}
	return name, nil
}

// reader takes bytes off a slice. After a read beyond its end it is not ok and gives nothing.
type reader struct{ b []byte }

func (r *reader) ok() bool    { return r.b != nil }
func (r *reader) empty() bool { return len(r.b) == 0 }

func (r *reader) take(n int) []byte {
	if r.b == nil || n > len(r.b) {
		r.b = nil
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) uint(size int) uint {
	var v uint
	for _, b := range r.take(size) {
		v = v<<8 | uint(b)
	}
	return v
}
