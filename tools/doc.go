// Package tools is the MCP edge of airlock: the conversation with a client, the tools that it
// offers, and what their results say. It is also where one run is put together of the packages
// sandbox and overlay, which do not know of each other.
//
// # What an attacker controls
//
// Not the client: it is trusted to be who it is and to relay what its user decides. But a model
// writes the arguments of calls, and what it writes may come from a web page or a file that it read;
// and a run controls every byte of its output and the names of its files. So:
//
//   - Arguments are checked against what the schema says before they become a [Request], and nothing
//     else sees them. Nothing of them is a path, a name or a flag for the server itself.
//   - Output becomes valid text without anything that drives a terminal, within a bound ([Output]).
//   - Of a result's text only the lines after the last line that begins with "exit=" are airlock's,
//     and each of them is one line ([Result.Text]).
//   - Nothing that a client sends, and no client that does not read, makes memory grow without bound.
//
// # Life cycle
//
// A [Server] is one conversation. It is made with the [Policy] in force and a way to open the
// [Runner] of a workspace, and [Serve] connects it to a client:
//
//	s := tools.New(tools.Options{
//		Version: version,
//		Policy:  policy,
//		Open: func(ctx context.Context, roots []string) (tools.Runner, error) {
//			return openWorkspace(ctx, roots)
//		},
//		AskRoots: workspace == "",
//	})
//	err := tools.Serve(ctx, os.Stdin, os.Stdout, s)
//
// One goroutine reads. It answers everything but tools/call by itself, at once. A tools/call gets its
// place in the queue and can be cancelled before the next message is looked at; then it is a goroutine
// of its own:
//
//	line -> message -> ticket -> arguments -> its turn -> Runner.Run -> result -> outbox
//	                                              progress ------------------------^
//
// What is between the arguments and the result is a job, which can outlive its call: see job.
//
// The outbox is one more goroutine, the only one that writes. The Runner is opened by the first call
// whose turn it is, after the client was asked for its roots if nothing else names the workspace.
//
// # Vocabulary
//
//   - A call is a tools/call of the client. Most calls are a run; a call with wrong arguments is not.
//   - A run is one command in one sandbox with one transaction.
//   - A ticket is a call's place in the queue. Calls have their turn in the order in which they were
//     read, one after the other or limits.runs at once.
//   - A message is one JSON-RPC message; a line holds one, or a batch of them.
//
// # Limitations
//
//   - mcp-go 1.2.1 decodes requests and keeps the tools, but its own stdio server is not used: it
//     loses cancellations that come before a worker took the call, answers cancelled calls, and lets
//     progress overtake results.
//   - A request before the handshake is served, as one of protocol 2026-07-28 is, which has none.
//   - That the client is gone is noticed without a write on Linux only.
//   - A carriage return replaces the line that it goes back on; terminals write over it character by
//     character.
//   - A member of a message that stands there twice is taken as Go's decoder takes it: the last one.
package tools
