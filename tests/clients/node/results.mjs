// A reporter for `node --test` that writes what the table in docs/clients.md is made from to `CLIENTS_RESULTS`.

import { appendFileSync } from "node:fs";

const openai = "openai (Node)";
const sdk = (name) => [
  [`${name}: generateText answers`, name, "plain"],
  [`${name}: streamText streams words and runs tools`, name, "streamed"],
  [`${name}: generateText runs tools`, name, "tools"],
  [`${name}: generateObject keeps the schema`, name, "structured output"],
];
const covers = [
  ["a text is answered, stored, listed and deleted", openai, "plain"],
  ["the stream helper ends with what is stored", openai, "streamed"],
  ["functions go round, one and several at once", openai, "tools"],
  ["an answer is parsed by its schema", openai, "structured output"],
  ...sdk("@ai-sdk/openai"),
  ...sdk("@ai-sdk/open-responses"),
];

export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    for (const [name, client, feature] of covers) {
      if (name !== data.name) continue;
      const result = { client, feature, ok: type === "test:pass" };
      appendFileSync(process.env.CLIENTS_RESULTS, `${JSON.stringify(result)}\n`);
    }
  }
  yield "";
}
