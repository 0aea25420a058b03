// Lists the tools of a gateway and calls some of them with the official TypeScript client; prints what came back.
// Usage: typescript.mjs SDK TARGET
import { pathToFileURL } from "node:url";

const [sdk, given] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(`${sdk}/client/${file}`).href);
const { Client } = await load("index.js");
const { StdioClientTransport } = await load("stdio.js");
const { StreamableHTTPClientTransport } = await load("streamableHttp.js");

const target = JSON.parse(given);
const [command, ...args] = target.program;
const transport = target.url
    ? new StreamableHTTPClientTransport(new URL(target.url))
    : new StdioClientTransport({ command, args });
const client = new Client({ name: "gateway-test", version: "1" });
await client.connect(transport);
const { tools } = await client.listTools();
const texts = [];
for (const [name, args] of target.steps) {
    const result = await client.callTool({ name, arguments: args });
    if (result.isError) throw new Error(JSON.stringify(result));
    texts.push(result.content.map((block) => block.text).join(""));
}
await client.close();
console.log(JSON.stringify({ names: tools.map((tool) => tool.name), texts }));
