// The client of the Pi coding agent (OpenWaggle behaves alike). It refuses a whole tool list when one schema is not an
// object, and shows the tools under names of its own, which must stay within 64 characters: both are checked here.
import { createMcpToolName, McpClient, normalizeMcpInputSchema, StreamableHttpTransport } from "@earendil-works/pi-mcp";
import { converse, headers, run, say, url } from "./shared.mjs";

await run(async () => {
  const transport = new StreamableHttpTransport({ url, headers });
  const client = new McpClient({ name: "waggle-test-pi", version: "1" });
  await client.connect(transport);
  const tools = await client.listTools();
  for (const tool of tools) {
    const shown = createMcpToolName("waggle", tool.name);
    if (shown !== `mcp__waggle__${tool.name}`) throw new Error(`Pi shows ${tool.name} as ${shown}`);
    if (normalizeMcpInputSchema(tool.inputSchema).type !== "object") throw new Error(`${tool.name}: no object schema`);
  }
  say({
    protocol: client.protocolVersion,
    session: transport.sessionId ?? null,
    server: client.serverInfo?.name,
    tools: tools.map((tool) => tool.name),
  });
  await converse((tool, args) => client.callTool(tool, args));
  await client.close();
});
