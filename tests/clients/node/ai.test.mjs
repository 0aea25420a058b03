// The `ai` package against `haft serve`, through both providers that speak Responses.

import assert from "node:assert/strict";
import test from "node:test";

import { ai, base, createOpenAI, createOpenResponses, z } from "./packages.mjs";

const { generateText, streamText, generateObject, streamObject, tool, stepCountIs } = ai;

const openai = createOpenAI({ baseURL: `${base}/v1`, apiKey: "test" });
const open = createOpenResponses({ name: "haft", url: `${base}/v1/responses`, apiKey: "test" });
const providers = { "@ai-sdk/openai": (name) => openai.responses(name), "@ai-sdk/open-responses": open };

const City = z.object({ name: z.string(), population: z.number() });

const tools = (log) => ({
  get_weather: tool({
    description: "The weather in a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      log.push(city);
      return `fine in ${city}`;
    },
  }),
});

for (const [name, model] of Object.entries(providers)) {
  test(`${name}: generateText answers`, async () => {
    const result = await generateText({ model: model("scripted"), prompt: "hi", maxRetries: 0 });
    assert.equal(result.text, "Hello from the script.");
    assert.equal(result.finishReason, "stop");
    assert.equal(result.usage.inputTokens, 10);
    assert.equal(result.usage.outputTokens, 5);
  });

  test(`${name}: generateText runs tools`, async () => {
    const log = [];
    const result = await generateText({
      model: model("offline"),
      prompt: "The weather in Oslo and Rome, please",
      tools: tools(log),
      stopWhen: stepCountIs(3),
      maxRetries: 0,
    });
    assert.deepEqual(log, ["Oslo", "Rome"]);
    assert.equal(result.steps.length, 2);
    assert.equal(result.steps[0].finishReason, "tool-calls");
    assert.match(result.text, /`get_weather`: fine in Oslo\n`get_weather`: fine in Rome/);
  });

  test(`${name}: streamText streams words and runs tools`, async () => {
    const log = [];
    const result = streamText({
      model: model("offline"),
      prompt: "The weather in Oslo, please",
      tools: tools(log),
      stopWhen: stepCountIs(3),
      maxRetries: 0,
    });
    const parts = [];
    for await (const part of result.fullStream) parts.push(part);
    const failed = parts.filter((part) => part.type === "error");
    assert.deepEqual(failed, []);
    const kinds = parts.map((part) => part.type);
    // `@ai-sdk/open-responses` shows calls only when they are whole.
    const pieces = name === "@ai-sdk/openai" ? ["tool-input-delta"] : [];
    for (const kind of [...pieces, "tool-call", "tool-result", "text-delta", "finish"])
      assert.ok(kinds.includes(kind), `no ${kind} in ${kinds}`);
    const call = parts.find((part) => part.type === "tool-call");
    assert.deepEqual([call.toolName, call.input], ["get_weather", { city: "Oslo" }]);
    assert.deepEqual(log, ["Oslo"]);
    assert.ok(kinds.filter((kind) => kind === "text-delta").length > 1);
    assert.match(await result.text, /`get_weather`: fine in Oslo/);
  });

  test(`${name}: thoughts come before the text`, async () => {
    const result = streamText({ model: model("scripted"), prompt: "Think first, then answer.", maxRetries: 0 });
    let thought = "";
    let text = "";
    for await (const part of result.fullStream) {
      if (part.type === "reasoning-delta") thought += part.text;
      if (part.type === "text-delta") text += part.text;
    }
    assert.equal(text, "Seen.");
    // `@ai-sdk/openai` shows summaries only.
    if (name === "@ai-sdk/open-responses") assert.equal(thought, "Let me see.");
  });

  test(`${name}: generateObject keeps the schema`, async () => {
    const result = await generateObject({
      model: model("scripted"),
      prompt: "Describe Oslo as an object.",
      schema: City,
      maxRetries: 0,
    });
    assert.deepEqual(result.object, { name: "Oslo", population: 717710 });
  });

  test(`${name}: streamObject keeps the schema`, async () => {
    const result = streamObject({
      model: model("scripted"),
      prompt: "Describe Oslo as an object.",
      schema: City,
      maxRetries: 0,
    });
    const partial = [];
    for await (const object of result.partialObjectStream) partial.push(object);
    assert.deepEqual(partial.at(-1), { name: "Oslo", population: 717710 });
    assert.deepEqual(await result.object, { name: "Oslo", population: 717710 });
  });

  test(`${name}: an error has its status and its message`, async () => {
    await assert.rejects(generateText({ model: model("gone"), prompt: "hi", maxRetries: 0 }), (error) => {
      assert.equal(error.statusCode, 404);
      assert.match(error.message, /`gone`/);
      return true;
    });
  });
}
