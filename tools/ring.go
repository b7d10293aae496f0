package tools

// ring keeps the last bytes that were written to it. Its memory grows with what it holds, up to
// size, so that a short output costs little however large the limit is.
type ring struct {
	size int
	buf  []byte // full: len(buf) == size
	next int    // once full, where the oldest byte is and the next one goes
}

func (r *ring) write(p []byte) {
	if room := r.size - len(r.buf); room > 0 {
		n := min(room, len(p))
		r.buf = append(r.buf, p[:n]...)
		p = p[n:]
	}
	if len(p) > r.size {
		p = p[len(p)-r.size:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % r.size
		p = p[n:]
	}
}

// bytes gives a copy of what r holds, the oldest first.
func (r *ring) bytes() []byte {
	return append(append(make([]byte, 0, len(r.buf)), r.buf[r.next:]...), r.buf[:r.next]...)
}
