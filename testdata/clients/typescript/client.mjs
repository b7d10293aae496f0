// client.mjs AIRLOCK WORKSPACE: the official SDK's client starts the server, lists its tools, validates
// them as the SDK does, and runs one. It throws, and so exits with status 1, if anything is not as it
// must be.
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

await client.close();
console.log(`ok  \ttypescript client: ${names.length} tools, one run`);
