// The `openai` package for Node against `haft serve`.

import assert from "node:assert/strict";
import test from "node:test";

import {
  OpenAI, ResponsesWS, base, openaiErrors, time, weather, z, zodResponsesFunction, zodTextFormat,
} from "./packages.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: "test", maxRetries: 0, timeout: 30_000 });
const City = z.object({ name: z.string(), population: z.number() });

// The helpers add fields of their own; what came over the wire is compared.
const added = new Set(["output_text", "output_parsed", "parsed", "parsed_arguments"]);
const plain = (value) =>
  JSON.parse(JSON.stringify(value, (key, it) => (added.has(key) || key.startsWith("_") ? undefined : it)));

test("a text is answered, stored, listed and deleted", async () => {
  const created = await client.responses.create({ model: "scripted", input: "Say hello." });
  assert.equal(created.status, "completed");
  assert.equal(created.output_text, "Hello from the script.");
  assert.deepEqual(created.usage.total_tokens, 15);
  assert.deepEqual(plain(await client.responses.retrieve(created.id)), plain(created));
  const items = [];
  for await (const item of client.responses.inputItems.list(created.id)) items.push(item);
  assert.deepEqual(items.map((item) => item.content[0].text), ["Say hello."]);
  await client.responses.delete(created.id);
  await assert.rejects(client.responses.retrieve(created.id), { status: 404, code: "response_not_found" });
});

test("raw events come in order", async () => {
  const events = [];
  for await (const event of await client.responses.create({ model: "scripted", input: "hi", stream: true }))
    events.push(event);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, number) => number));
  assert.deepEqual(events.slice(0, 2).map((event) => event.type), ["response.created", "response.in_progress"]);
  const text = events.filter((it) => it.type === "response.output_text.delta").map((it) => it.delta).join("");
  assert.equal(text, "Hello from the script.");
  assert.equal(events.at(-1).type, "response.completed");
});

test("the stream helper ends with what is stored", async () => {
  const deltas = [];
  const stream = client.responses.stream({ model: "scripted", input: "hi" });
  stream.on("response.output_text.delta", (event) => deltas.push(event.snapshot));
  const final = await stream.finalResponse();
  assert.equal(deltas.at(-1), "Hello from the script.");
  assert.equal(final.output_text, "Hello from the script.");
  assert.deepEqual(plain(await client.responses.retrieve(final.id)), plain(final));
});

test("the stream helper knows the events of thoughts and calls", async () => {
  const thinking = client.responses.stream({ model: "scripted", input: "Think first, then answer." });
  const thought = await thinking.finalResponse();
  assert.deepEqual(thought.output.map((item) => item.type), ["reasoning", "message"]);
  assert.equal(thought.output[0].content[0].text, "Let me see.");
  const calling = client.responses.stream({ model: "scripted", input: "both, please", tools: [weather, time] });
  const called = await calling.finalResponse();
  assert.deepEqual(called.output.map((item) => item.name), ["get_weather", "get_time"]);
});

test("an answer is parsed by its schema", async () => {
  const request = {
    model: "scripted",
    input: "Describe Oslo as an object.",
    text: { format: zodTextFormat(City, "city") },
  };
  const response = await client.responses.parse(request);
  assert.deepEqual(response.output_parsed, { name: "Oslo", population: 717710 });
  assert.equal(response.text.format.name, "city");
  const streamed = await client.responses.stream(request).finalResponse();
  assert.deepEqual(streamed.output_parsed, { name: "Oslo", population: 717710 });
});

test("arguments are parsed by their schema", async () => {
  const tool = zodResponsesFunction({ name: "get_weather", parameters: z.object({ city: z.string() }) });
  const response = await client.responses.parse({ model: "scripted", input: "Weather?", tools: [tool] });
  assert.deepEqual(response.output[0].parsed_arguments, { city: "Paris" });
});

test("functions go round, one and several at once", async () => {
  for (const input of ["The weather in Oslo, please", "The weather in Oslo and Rome, please"]) {
    const tools = { model: "offline", tools: [weather, time] };
    const first = await client.responses.create({ input, ...tools });
    const cities = first.output.map((call) => JSON.parse(call.arguments).city);
    assert.deepEqual(cities, input.includes("Rome") ? ["Oslo", "Rome"] : ["Oslo"]);
    const outputs = first.output.map((call, number) => ({
      type: "function_call_output", call_id: call.call_id, output: `fine in ${cities[number]}`,
    }));
    const second = await client.responses.create({ input: outputs, previous_response_id: first.id, ...tools });
    for (const city of cities) assert.match(second.output_text, new RegExp(`\`get_weather\`: fine in ${city}`));
  }
});

test("a background run is resumed after the events that were seen", async () => {
  const request = { model: "scripted", input: "hi", background: true, stream: true };
  const events = [];
  for await (const event of await client.responses.create(request)) events.push(event);
  const id = events[0].response.id;
  const rest = [];
  for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 4 })) rest.push(event);
  assert.deepEqual(rest, events.slice(5));
  const resumed = client.responses.stream({ response_id: id, starting_after: 4 });
  const final = await resumed.finalResponse();
  assert.equal(final.output_text, "Hello from the script.");
});

test("conversations hold what was said", async () => {
  const conversation = await client.conversations.create({ items: [{ role: "user", content: "one" }] });
  await client.responses.create({ model: "scripted", input: "two", conversation: conversation.id });
  const said = [];
  for await (const item of client.conversations.items.list(conversation.id, { order: "asc" }))
    said.push(item.content[0].text);
  assert.deepEqual(said, ["one", "two", "Hello from the script."]);
});

test("a compacted window goes on", async () => {
  const input = [{ role: "user", content: "Remember: green." }];
  const compacted = await client.responses.compact({ model: "scripted", input });
  assert.deepEqual(compacted.output.map((item) => item.type), ["message", "compaction"]);
  const next = [...compacted.output, { role: "user", content: "Which colour?" }];
  const response = await client.responses.create({ model: "scripted", input: next });
  assert.equal(response.status, "completed");
});

test("turns go over a socket", async () => {
  const socket = new ResponsesWS(client);
  try {
    const texts = [];
    socket.send({ type: "response.create", model: "scripted", input: "hi", store: false });
    for await (const event of socket.stream()) {
      if (event.type === "error") throw event.error;
      if (event.type !== "message" || event.message.type !== "response.completed") continue;
      texts.push(event.message.response.output[0].content[0].text);
      if (texts.length === 2) break;
      const previous_response_id = event.message.response.id;
      socket.send({ type: "response.create", model: "scripted", input: "more", store: false, previous_response_id });
    }
    assert.deepEqual(texts, ["Hello from the script.", "Hello from the script."]);
  } finally {
    socket.close();
  }
});

test("errors have their class, code and place", async () => {
  await assert.rejects(client.responses.create({ model: "gone", input: "hi" }), (error) => {
    assert.ok(error instanceof openaiErrors.NotFoundError);
    assert.deepEqual([error.status, error.code, error.param], [404, "model_not_found", "model"]);
    return true;
  });
  await assert.rejects(
    client.responses.create({ model: "offline", input: "hi", temperature: 9, stream: true }),
    (error) => error instanceof openaiErrors.BadRequestError && error.param === "temperature",
  );
});
