// The official TypeScript client 2.x. WAGGLE_MCP_ERA: "auto" asks server/discover first, "legacy" goes straight to
// initialize, a revision such as 2026-07-28 accepts nothing else.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { converse, era, headers, run, say, url } from "./shared.mjs";

await run(async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  const mode = era === "auto" || era === "legacy" ? era : { pin: era };
  const client = new Client({ name: "waggle-test-ts2", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(transport);
  const { tools } = await client.listTools();
  say({
    protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
    session: transport.sessionId ?? null,
    server: client.getServerVersion?.()?.name,
    tools: tools.map((tool) => tool.name),
  });
  await converse((tool, args) => client.callTool({ name: tool, arguments: args }));
  await client.close();
});
