// Calls methods of the `resend` package: reads {baseUrl, key, calls: {method: [arguments]}} from standard input, and
// writes the methods that the package has, and the result of each call.
import { readFileSync } from "node:fs";
import { createElement } from "react";
import { Resend } from "resend";

const { baseUrl, key, calls } = JSON.parse(readFileSync(0, "utf8"));
const client = new Resend(key, { baseUrl });
// What a call without arguments of its own gets: an object that is its own id.
const anything = {
  id: "x", email: "x@example.com", contactId: "x", segmentId: "x", audienceId: "x", inboxId: "x", threadId: "x",
  emailId: "x", labelId: "x", draftId: "x", automationId: "x", domainId: "x", webhookId: "x", eventId: "x", runId: "x",
  name: "x", file: new Blob(["x"]), toString: () => "x",
};

function methods(object, path = []) {
  const own = Object.entries(object)
    .filter(([, value]) => value && typeof value === "object" && value !== client && !(value instanceof Headers))
    .flatMap(([name, value]) => methods(value, [...path, name]));
  const named = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== "constructor");
  return [...own, ...named.map((name) => [...path, name].join("."))];
}

function revived(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(revived);
  if ("$react" in value) return createElement("p", null, value.$react);
  if ("$buffer" in value) return Buffer.from(value.$buffer);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, revived(one)]));
}

async function called(method, given) {
  const names = method.split(".");
  const owner = names.slice(0, -1).reduce((object, name) => object[name], client);
  const args = given === null ? [anything, anything] : given.map(revived);
  try {
    return await owner[names.at(-1)](...args);
  } catch (problem) {
    return { error: { message: `thrown: ${problem.message}` } };
  }
}

const results = {};
for (const [method, given] of Object.entries(calls)) results[method] = await called(method, given);
console.log(JSON.stringify({ methods: methods(client), results }));
