// Package proxy decides what a run may reach over the network, and reaches it on the run's behalf.
//
// A run has a network namespace of its own, with no interface to anywhere; that is package sandbox's to
// hold. What is here gets the listening sockets of that namespace. The run's connections arrive there by
// a redirect that programs don't notice, or where the kernel can't redirect at a listener for each name
// and port; its DNS queries at a resolver that asks nobody; and programs that were told of a proxy find
// one that speaks HTTP and SOCKS5. Each destination is judged by a policy, and dialled from the host.
//
// # What an attacker controls
//
// All that a run sends: destinations, queries, requests, every byte of a TLS handshake, and how slowly or
// how often. The answers of the network: what a name resolves to, and that may differ from one time to
// the next. And the project policy, a file in the workspace, which may name patterns; it only ever
// narrows the user's, which [Pattern.Covers] decides.
//
// So hosts are canonical before anything is compared (see [CanonicalHost]), and no spelling of a name or
// an address is judged differently from another. A name is resolved once, by us, each of its addresses is
// judged, and only one that was judged is dialled. What is held for a run is bounded: names, refusals,
// connections, and one buffer a direction.
//
// # Life cycle
//
//	gateway, err := proxy.NewGateway(config, nil)
//	…
//	gateway.Policy().Decide("example.org", 443) // a Verdict: allowed or not, by which rule, and why
//
//	session := gateway.Serve(listeners) // one for each run
//	// … the run goes on …
//	session.Close()
//	refused, more := session.Denied()
//
// # Vocabulary
//
//   - host: a DNS name or an IP address. Destination: a host and a port.
//   - pattern: a host, or "*." and a host, which stands for every name below that host at any depth but
//     not for the host itself; with ":port" it stands for that port, with ":*" for any port. Without either
//     it stands for ports 80 and 443 in network.allow, and for every port in network.deny.
//   - stand-in: the address, of 198.18.0.0/15, that a name has inside one run. A connection to it is one
//     to the name.
//   - refusal: what the policy does not allow. The run sees a name that does not exist, a connection that
//     is reset, a status 403 or SOCKS5's "not allowed"; the session notes the destination and the reason.
//
// # Limitations
//
//   - Names are ASCII: an internationalised name is written in its "xn--" form. There is no list of public
//     suffixes: "*.com" is a pattern like any other.
//   - TLS is not opened. The server name of the first message must be the host that was asked for, where
//     there is one. What travels inside is not seen: where one address serves many names, as in a content
//     delivery network, a run can ask an allowed host for another one's content (domain fronting).
//   - TLS that is begun within another protocol (STARTTLS) is not compared: only the first bytes are read, and what follows
//     PostgreSQL's request for it.
//   - A server name that is encrypted (ECH) is not seen either; the outer one is what counts.
//   - Only TCP goes out, and DNS only as far as the resolver: QUIC and other UDP is refused at once.
//   - With an upstream that is given names ("name:"), addresses are judged by nobody here.
//   - With network.mode = "allow" every name that is well-formed has a stand-in, whether it exists or not:
//     that shows when the connection is made.
package proxy
