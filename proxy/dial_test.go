package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A name that leads somewhere else at each look is dialled where it led when it was judged.
func TestResolvedOnceAndJudged(t *testing.T) {
	var lookups int
	public := netip.MustParseAddr("93.184.216.34")
	d := &dialer{
		policy: policyOf(t, Config{Mode: "allow"}), own: func() []netip.Addr { return nil },
		lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			lookups++
			if host != "rebind.test." {
				t.Errorf("looked up %q", host)
			}
			if lookups > 1 {
				return []netip.Addr{netip.MustParseAddr("10.0.0.5")}, nil
			}
			return []netip.Addr{
				netip.MustParseAddr("::ffff:169.254.169.254"), public, netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("64:ff9b::a00:5"),
			}, nil
		},
	}
	var dialled []string
	d.connect = func(_ context.Context, addr netip.AddrPort) (net.Conn, error) {
		dialled = append(dialled, addr.String())
		return nil, errors.New("refused")
	}
	if _, err := d.dial(context.Background(), "rebind.test", 443); err == nil || err.Error() != "refused" {
		t.Errorf("the first dial: %v", err)
	}
	_, err := d.dial(context.Background(), "rebind.test", 443)
	denied := new(DeniedError)
	if !errors.As(err, &denied) || denied.Reason != "10.0.0.5 is private, and network.private does not name it" {
		t.Errorf("the second dial: %v", err)
	}
	if !slices.Equal(dialled, []string{"93.184.216.34:443"}) || lookups != 2 {
		t.Errorf("dialled %v after %d lookups", dialled, lookups)
	}
}

// An address that does not answer keeps nobody waiting for one that does.
func TestDeadFamily(t *testing.T) {
	start := time.Now()
	conn, err := race(context.Background(), interleave([]netip.Addr{
		netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
	}), 443, func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
		if addr.Addr().Is4() {
			c, _ := net.Pipe()
			return c, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}
