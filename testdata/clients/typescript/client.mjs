// client.mjs AIRLOCK WORKSPACE: the official SDK's client starts the server, lists its tools, validates
// them as the SDK does, runs one, follows one by its progress, and cancels one. It throws, and so exits with
// status 1, if anything is not as it must be.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport, getDefaultEnvironment } from "@modelcontextprotocol/sdk/client/stdio.js";

const [airlock, workspace] = process.argv.slice(2);
const client = new Client({ name: "typescript-client", version: "1" });
await client.connect(
  new StdioClientTransport({
    command: airlock,
    args: ["serve", "--workspace", workspace, "--log-level", "warn"],
    env: { ...getDefaultEnvironment(), HOME: process.env.HOME },
  }),
);

const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name);
for (const name of ["run_shell", "run_python"]) {
  assert(names.includes(name), `no tool ${name} among ${names}`);
}

// callTool checks structuredContent against the tool's output schema, because listTools has cached it.
const command = "echo from the client > made.txt; cat made.txt";
const result = await client.callTool({ name: "run_shell", arguments: { command } });
assert(!result.isError, JSON.stringify(result));
assert.match(result.content[0].text, /from the client\nexit=0\nworkspace: 1 added: made\.txt/);
assert.equal(result.structuredContent.status, "exited");
assert.deepEqual(result.structuredContent.workspace.added, ["made.txt"]);
assert.equal(readFileSync(`${workspace}/made.txt`, "utf8"), "from the client\n");

// Each note of progress starts the client's timeout anew: the call takes longer than that and ends well.
const notes = [];
const slow = await client.callTool(
  { name: "run_shell", arguments: { command: "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 1; done" } },
  undefined,
  { onprogress: (note) => notes.push(note), timeout: 6000, resetTimeoutOnProgress: true },
);
assert.equal(slow.structuredContent.status, "exited");
assert(notes.length >= 3, `${notes.length} notes of progress`);
for (const [i, note] of notes.entries()) {
  assert(i === 0 || note.progress > notes[i - 1].progress, JSON.stringify(notes));
}

// A cancelled call leaves nothing, and the next one is served.
const abort = new AbortController();
const cancelled = client.callTool({ name: "run_shell", arguments: { command: "echo no > cancelled.txt; sleep 1000" } }, undefined, {
  signal: abort.signal,
  onprogress: () => abort.abort(new Error("cancelled by the test")),
});
await assert.rejects(cancelled, /cancelled by the test/);
const after = await client.callTool({ name: "run_shell", arguments: { command: "ls" } });
assert.equal(after.structuredContent.output, "made.txt\n");

await client.close();
console.log(`ok  \ttypescript client: ${names.length} tools, a run, ${notes.length} notes of progress, a cancelled run`);
