// Stands between the conformance suite, which sends no token, and a server: adds the token to each request, and writes the suite's own
// tools as extensions first. Prints the URL for the suite.
import { createServer, request } from "node:http";

const [address, token] = process.argv.slice(2);
const source = `
import { extension } from "stile";
const input = { type: "object", properties: {} } as const;
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
export default extension({
  tools: {
    simple_text: { description: "Returns text", input, run: () => "This is a simple text response for testing." },
    error_handling: {
      description: "Fails",
      input,
      run: () => {
        throw new Error("This tool intentionally returns an error for testing");
      },
    },
    tool_with_logging: {
      description: "Logs",
      input,
      run: async () => {
        console.log("Tool execution started");
        await pause(50);
        console.log("Tool processing data");
        await pause(50);
        console.log("Tool execution completed");
        return "done";
      },
    },
    // A client that wants progress hears of it each second; the suite wants to hear of it three times.
    tool_with_progress: {
      description: "Takes its time",
      input,
      run: async () => {
        await pause(4500);
        return "done";
      },
    },
  },
});
`;
const schemas = `
import { extension } from "stile";
export default extension({
  tools: {
    schema_2020_12_tool: {
      description: "Tool with JSON Schema 2020-12 features",
      input: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        $defs: { address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } } } },
        properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
        additionalProperties: false,
      },
      run: () => "ok",
    },
  },
});
`;

let session;
async function send(method, params, id) {
  const response = await fetch(`http://${address}/mcp`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      ...(session && { "Mcp-Session-Id": session }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  });
  const body = await response.text();
  if (!response.ok) throw new Error(`${method}: ${response.status} ${body}`);
  session ??= response.headers.get("Mcp-Session-Id");
  const data = body.match(/^data: (\{.*"result".*)$/m);
  if (id && !data) throw new Error(`${method}: ${body}`);
  return id && JSON.parse(data[1]).result;
}

await send("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "conformance", version: "1" } }, 1);
await send("notifications/initialized");
async function write(name, tools, source) {
  const manifest = { name, version: "1.0.0", description: "What the conformance suite calls", tools };
  const written = await send("tools/call", { name: "extension_write", arguments: { manifest, source } }, 2);
  if (written.structuredContent?.state !== "active") throw new Error(JSON.stringify(written));
}
await write("test", ["simple_text", "error_handling", "tool_with_logging", "tool_with_progress"], source);
await write("json", ["schema_2020_12_tool"], schemas);

const bridge = createServer((from, to) => {
  const [host, port] = address.split(":");
  // Host and Origin stay what the suite sends, but for the port.
  const headers = { ...from.headers, authorization: `Bearer ${token}` };
  for (const name of ["host", "origin"]) headers[name] &&= headers[name].replace(`:${bridge.address().port}`, `:${port}`);
  const onward = request({ host, port, path: from.url, method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    answer.pipe(to);
  });
  onward.on("error", () => to.destroy());
  to.on("close", () => onward.destroy());
  from.pipe(onward);
});
bridge.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${bridge.address().port}/mcp`));
