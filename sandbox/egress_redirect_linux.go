package sandbox

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// redirect makes rules in the run's network namespace. But for what stays on loopback, and the name
// server's traffic,
//
//	every TCP connection goes to the redirect's port
//	every UDP datagram goes to the same port number, where nothing listens: that is answered at once,
//	and the program's socket says "connection refused"
//	everything else is refused
//
// They are a convenience for programs that know of no proxy. What keeps the run in is that its namespace
// has no interface to anywhere: where IPv6 has no rules, since the kernel lacks it or its NAT, the kernel resets what goes to
// its addresses, see addDefaultRoute, and ipv6 is false.
func redirect(e Egress) (ipv6 bool, err error) {
	c, err := nftables.New()
	if err != nil {
		return false, setupError("open socket", "nf_tables", err)
	}
	redirectIPv4(c, e)
	if err := c.Flush(); err != nil {
		return false, &SetupError{
			Op: "redirect the run's connections", Err: err,
			Hint: "nf_tables is there, but refuses a rule: the kernel module nft_redir may be missing; load it, or allow it in this container",
		}
	}
	redirectIPv6(c, e)
	err = c.Flush()
	if err != nil && !isUnavailable(err) {
		return false, setupError("redirect the run's IPv6 connections", "", err)
	}
	return err == nil, nil
}

func redirectIPv4(c *nftables.Conn, e Egress) {
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "airlock"})
	const destination, source = 16, 12 // offsets in the header
	resolver := netip.MustParseAddr(ResolverAddress).AsSlice()
	loopback := []expr.Any{
		payload(expr.PayloadBaseNetworkHeader, destination, 1),
		equal([]byte{127}),
	}
	at := func(address uint32, protocol byte, port uint32) []expr.Any {
		return join(
			[]expr.Any{payload(expr.PayloadBaseNetworkHeader, address, 4), equal(resolver)},
			isProtocol(protocol),
			[]expr.Any{payload(expr.PayloadBaseTransportHeader, port, 2), equal(binary.BigEndian.AppendUint16(nil, 53))},
		)
	}
	const destinationPort, sourcePort = 2, 0
	nat, filter := chains(c, table)
	addRule(c, nat, loopback, accept())
	addRule(c, nat, at(destination, unix.IPPROTO_TCP, destinationPort), accept())
	addRule(c, nat, at(destination, unix.IPPROTO_UDP, destinationPort), accept())
	addRule(c, nat, at(source, unix.IPPROTO_UDP, sourcePort), accept())
	addRule(c, nat, isProtocol(unix.IPPROTO_TCP), redirectTo(e.RedirectPort))
	addRule(c, nat, isProtocol(unix.IPPROTO_UDP), redirectTo(e.RedirectPort))
	addRule(c, filter, isProtocol(unix.IPPROTO_TCP), accept())
	addRule(c, filter, isProtocol(unix.IPPROTO_UDP), accept())
	addRule(c, filter, isProtocol(unix.IPPROTO_ICMP), accept())                               // the kernel's answers
	addRule(c, filter, []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 2}}) // protocol unreachable
}

func redirectIPv6(c *nftables.Conn, e Egress) {
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv6, Name: "airlock"})
	const destination = 24
	loopback := []expr.Any{
		payload(expr.PayloadBaseNetworkHeader, destination, 16),
		equal(netip.IPv6Loopback().AsSlice()),
	}
	nat, filter := chains(c, table)
	addRule(c, nat, loopback, accept())
	addRule(c, nat, isProtocol(unix.IPPROTO_TCP), redirectTo(e.RedirectPort))
	addRule(c, nat, isProtocol(unix.IPPROTO_UDP), redirectTo(e.RedirectPort))
	addRule(c, filter, isProtocol(unix.IPPROTO_TCP), accept())
	addRule(c, filter, isProtocol(unix.IPPROTO_UDP), accept())
	addRule(c, filter, isProtocol(unix.IPPROTO_ICMPV6), accept())                             // the kernel's answers
	addRule(c, filter, []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 1}}) // prohibited
}

func chains(c *nftables.Conn, table *nftables.Table) (nat, filter *nftables.Chain) {
	nat = c.AddChain(&nftables.Chain{
		Name: "redirect", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest,
	})
	filter = c.AddChain(&nftables.Chain{
		Name: "refuse", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter,
	})
	return nat, filter
}

// addRule adds a rule: what is matched, and what is done with it.
func addRule(c *nftables.Conn, chain *nftables.Chain, parts ...[]expr.Any) {
	c.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: join(parts...)})
}

func join(parts ...[]expr.Any) (all []expr.Any) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// register is where an expression leaves what the next one takes.
const register = unix.NFT_REG_1

func payload(base expr.PayloadBase, offset, size uint32) expr.Any {
	return &expr.Payload{DestRegister: register, Base: base, Offset: offset, Len: size}
}

func equal(value []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: value}
}

func isProtocol(protocol byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}, equal([]byte{protocol})}
}

func accept() []expr.Any { return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}} }

func redirectTo(port int) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: register, Data: binary.BigEndian.AppendUint16(nil, uint16(port))},
		&expr.Redir{RegisterProtoMin: register},
	}
}
