package proxy

import "bytes"

// A client of PostgreSQL asks for encryption in plain, eight bytes that are the same each time, and begins TLS on the same connection
// once the server has answered with one byte (PostgreSQL's manual, "SSL Session Encryption" and "GSSAPI Session Encryption"). So what
// comes after them is a client's first bytes once more. What the server answers need not be known: if it declines, the client goes
// on with something that is no TLS.
var plainRequests = [][]byte{
	{0, 0, 0, 8, 4, 210, 22, 47}, // SSLRequest
	{0, 0, 0, 8, 4, 210, 22, 48}, // GSSENCRequest, which a server may decline before it is asked for TLS
}

const (
	plainRequestSize = 8
	// maxPlainRequests is more than any client sends. A server may well answer one after the other without an end.
	maxPlainRequests = 8
)

// withoutPlainRequests counts the bytes of b, the first of a client, that ask for encryption: they can go on to the server, which
// the client may be waiting for. more says that b ends in them, so that what follows is to be seen too. It never asks to hold
// bytes back: a protocol that begins in the same way meets no difference.
func withoutPlainRequests(b []byte) (n int, more bool, err error) {
	for range maxPlainRequests {
		rest := b[n:]
		fits := false
		for _, request := range plainRequests {
			whole := len(rest) >= plainRequestSize
			if whole && bytes.HasPrefix(rest, request) {
				n += plainRequestSize
				fits = true
				break
			}
			if !whole && bytes.HasPrefix(request, rest) {
				return len(b), true, nil
			}
		}
		if !fits {
			return n, false, nil
		}
	}
	return 0, false, errNotHello
}
