// `@openai/agents` against `haft serve`: `node agents.mjs BASE_URL TASK` prints what came back as one line of
// JSON. `CLIENTS_PACKAGES` names the folder where the packages are installed.

import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.env.CLIENTS_PACKAGES, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Agent, run, tool, setDefaultOpenAIClient, setTracingDisabled } = await load("@openai/agents");
const { OpenAI } = await load("openai");
const { z } = await load("zod");

const [baseURL, task] = process.argv.slice(2);

// recipe: @openai/agents
setDefaultOpenAIClient(new OpenAI({ baseURL, apiKey: "test" }));
setTracingDisabled(true);
const agent = (more) => new Agent({ name: "assistant", instructions: "Be brief.", model: "double", ...more });
// end

const asked = [];
const weather = tool({
  name: "get_weather",
  description: "The weather in a city",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => {
    asked.push(city);
    return `rain in ${city}`;
  },
});

const tasks = {
  plain: async () => (await run(agent(), "hi")).finalOutput,
  streamed: async () => {
    const result = await run(agent(), "count", { stream: true });
    const pieces = [];
    for await (const piece of result.toTextStream()) pieces.push(piece);
    await result.completed;
    return pieces;
  },
  tools: async () => {
    const result = await run(agent({ tools: [weather] }), "Weather in Oslo?");
    return { text: result.finalOutput, asked };
  },
  structured: async () => {
    const outputType = z.object({ name: z.string(), population: z.number() });
    return (await run(agent({ outputType }), "Describe Oslo.")).finalOutput;
  },
};
console.log(JSON.stringify(await tasks[task]()));
