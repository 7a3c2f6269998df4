// usage: WAGGLE_MCP_KEY=... node auth_proxy.mjs TARGET-URL
// The conformance suite cannot send headers. This loopback proxy adds the bearer key to every request and leaves all
// else alone; it prints the URL to use as its first line, and ends when its standard input closes.
//
// One thing needs care: the suite connects to the proxy's port, the server checks Host and Origin against its own. Those
// that name the proxy are rewritten; any other value is what the DNS-rebinding scenario sends, and must arrive as sent.
import http from "node:http";

const target = new URL(process.argv[2]);
if (target.protocol !== "http:" || !["127.0.0.1", "localhost", "[::1]"].includes(target.hostname)) {
  console.error("the proxy serves loopback URLs only");
  process.exit(2);
}
const key = process.env.WAGGLE_MCP_KEY ?? "";
let own = [];

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${key}` };
  if (own.includes(headers.host)) headers.host = target.host;
  if (own.some((host) => headers.origin === `http://${host}`)) headers.origin = target.origin;
  const onward = http.request(
    { host: target.hostname, port: target.port, path: target.pathname, method: request.method, headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    },
  );
  onward.on("error", (problem) => {
    if (response.headersSent) return response.destroy();
    response.writeHead(502, { "content-type": "text/plain" });
    response.end(`proxy: ${problem.message}\n`);
  });
  // A caller that goes away must look like one that goes away, for the checks about cancellation.
  response.on("close", () => onward.destroy());
  request.pipe(onward);
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  own = [`127.0.0.1:${port}`, `localhost:${port}`];
  console.log(`http://127.0.0.1:${port}/mcp`);
});
process.stdin.on("end", () => process.exit(0)).resume();
