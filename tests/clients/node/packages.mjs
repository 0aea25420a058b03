// The packages under test. They are installed away from the sources (`CLIENTS_PACKAGES`), where an
// `import` would not find them.

import { createRequire } from "node:module";
import path from "node:path";

const folder = process.env.CLIENTS_PACKAGES ?? path.resolve("target/clients/node");
const require = createRequire(path.join(folder, "package.json"));

export const { OpenAI } = require("openai");
export const openaiErrors = require("openai");
export const { zodTextFormat, zodResponsesFunction } = require("openai/helpers/zod");
export const { ResponsesWS } = require("openai/resources/responses/ws");
export const ai = require("ai");
export const { createOpenAI } = require("@ai-sdk/openai");
export const { createOpenResponses } = require("@ai-sdk/open-responses");
export const { z } = require("zod");

/// Where the server is.
export const base = process.env.HAFT_URL;
if (!base) throw new Error("`HAFT_URL` is not set: name the address of a running `haft serve`");

/// The functions that the models call.
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const tool = (name, description) => ({ type: "function", name, description, parameters, strict: true });
export const weather = tool("get_weather", "The weather in a city");
export const time = tool("get_time", "The time in a city");
