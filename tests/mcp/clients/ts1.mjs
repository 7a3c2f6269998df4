// The official TypeScript SDK 1.x: the initialize era, embedded in most clients that people run today.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { converse, headers, run, say, url } from "./shared.mjs";

await run(async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  const client = new Client({ name: "waggle-test-ts1", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  say({
    protocol: transport.protocolVersion,
    session: transport.sessionId ?? null,
    server: client.getServerVersion()?.name,
    tools: tools.map((tool) => tool.name),
  });
  await converse((tool, args) => client.callTool({ name: tool, arguments: args }));
  await client.close();
});
