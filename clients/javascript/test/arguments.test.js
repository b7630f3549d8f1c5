// What the client refuses, without a request.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Postroad } from "../index.js";
import { attachmentFromFile } from "../node.js";
import { EMAIL } from "./support/server.js";

const GOOD = { baseUrl: "https://mail.example.com", token: "pr_live_s3cret" };

function noFetch() {
  assert.fail("a request was made");
}

/** Asserts that it is a TypeError that says so and tells no secret. */
function refusal(pattern) {
  return (error) => {
    assert.ok(error instanceof TypeError, String(error));
    assert.match(error.message, pattern);
    assert.doesNotMatch(error.message, /s3cret/);
    return true;
  };
}

for (const baseUrl of [
  undefined, 1, "", "mail.example.com", "//mail.example.com", "https:mail.example.com", "https://", "https:///mail",
  "ftp://mail.example.com", "http+unix://x", "https://u:s3cret@mail.example.com", "https://@mail.example.com",
  "https://mail.example.com?", "https://mail.example.com/?a=1", "https://mail.example.com#", "https://mail.example.com/#a",
  " https://mail.example.com", "https://mail.example.com\n", "https://mail\t.example.com", "https:\\\\mail.example.com",
  "https://mail.example.com\\@evil.example", new URL("https://u:s3cret@mail.example.com"),
]) {
  test(`the base URL ${JSON.stringify(baseUrl)}`, () => {
    assert.throws(() => new Postroad({ ...GOOD, baseUrl }), refusal(/baseUrl/));
  });
}

for (const baseUrl of ["https://[::1", "https://mail.example.com:99999", "https://a%00b"]) {
  test(`the base URL ${baseUrl}, which is no URL`, () => {
    assert.throws(() => new Postroad({ ...GOOD, baseUrl }), refusal(/Invalid URL/));
  });
}

for (const [what, credential] of [
  ["none", { token: undefined }],
  ["an empty token", { token: "" }],
  ["both", { username: "u", password: "s3cret" }],
  ["a token and half of the other", { password: "s3cret" }],
  ["no password", { token: null, username: "u" }],
  ["no username", { token: undefined, password: "s3cret" }],
  ["a colon in the username", { token: undefined, username: "u:v", password: "s3cret" }],
  ["a line break in the token", { token: "s3cret\r\nX-Evil: 1" }],
  ["a NUL in the token", { token: "s3cret\0" }],
  ["a token beyond ASCII", { token: "s3cret\u{fc}" }],
  ["a token that is no string", { token: ["s3cret"] }],
]) {
  test(`a credential with ${what}`, () => {
    assert.throws(() => new Postroad({ ...GOOD, ...credential }), refusal(/token|username|password/));
  });
}

for (const [name, values] of Object.entries({
  timeout: [0, -1, NaN, Infinity, 2 ** 31, "30"],
  maxElapsed: [-1, NaN, Infinity, 2 ** 31, null],
  maxRetries: [4],
  fetch: [null, {}],
  base_url: ["https://mail.example.com"],
})) {
  test(`a bad ${name}`, () => {
    for (const value of values) {
      assert.throws(() => new Postroad({ ...GOOD, [name]: value }), refusal(new RegExp(name)));
    }
  });
}

test("no options at all", () => assert.throws(() => new Postroad(), refusal(/options/)));

for (const id of ["", "..", "../v1", "a/b", "a?b", "a#b", "a%2fb", "em_1\n", "em 1", "ä", undefined, 1, ["em_1"]]) {
  test(`the id ${JSON.stringify(id)}`, async () => {
    await assert.rejects(new Postroad({ ...GOOD, fetch: noFetch }).get(id), refusal(/id must be/));
    await assert.rejects(new Postroad({ ...GOOD, fetch: noFetch }).wait(id), refusal(/id must be/));
  });
}

for (const idempotencyKey of ["a\r\nX-Evil: 1", "a\nb", "a\0", "schlüssel", 7]) {
  test(`the key ${JSON.stringify(idempotencyKey)}`, async () => {
    await assert.rejects(new Postroad({ ...GOOD, fetch: noFetch }).send(EMAIL, { idempotencyKey }), refusal(/idempotencyKey/));
  });
}

for (const [pattern, email] of [
  [/email must be an object/, undefined],
  [/there is no "reply_to".*replyTo/, { ...EMAIL, reply_to: "a@example.com" }],
  [/attachments must be an array/, { ...EMAIL, attachments: {} }],
  [/filename must be a string/, { ...EMAIL, attachments: [Promise.resolve()] }],
  [/content must be a Buffer/, { ...EMAIL, attachments: [{ filename: "a", content: "text" }] }],
  [/there is no "content_type"/, { ...EMAIL, attachments: [{ filename: "a", content: Buffer.of(), content_type: "a/b" }] }],
]) {
  test(`an email: ${pattern.source}`, async () => {
    await assert.rejects(new Postroad({ ...GOOD, fetch: noFetch }).send(email), refusal(pattern));
  });
}

test("options of a call that nobody knows", async () => {
  const client = new Postroad({ ...GOOD, fetch: noFetch });
  await assert.rejects(client.send(EMAIL, { idempotency_key: "a" }), refusal(/idempotency_key/));
  await assert.rejects(client.send(EMAIL, "order-1042"), refusal(/must be an object/));
  await assert.rejects(client.get("em_1", { idempotencyKey: "a" }), refusal(/idempotencyKey/));
  await assert.rejects(client.wait("em_1", 300_000), refusal(/must be an object/));
  for (const timeout of [-1, NaN, "1"]) await assert.rejects(client.wait("em_1", { timeout }), refusal(/timeout/));
  await assert.rejects(attachmentFromFile("a.txt", { content: Buffer.of() }), refusal(/content/));
});
