// What the client sends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Attachment, Postroad } from "../index.js";
import { ACCEPTED, EMAIL, FOUND, clientOf, serve } from "./support/server.js";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("a send is a POST with everything it needs", async (t) => {
  const server = await serve(t, [ACCEPTED]);
  await clientOf(server).send(EMAIL, { idempotencyKey: "order-1042-receipt" });
  const [{ method, url, headers, body }] = server.requests;
  assert.equal(`${method} ${url}`, "POST /emails");
  assert.equal(headers.authorization, "Bearer pr_live_x");
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["idempotency-key"], "order-1042-receipt");
  assert.equal(headers["user-agent"], "postroad-javascript/0.1.0");
  assert.deepEqual(JSON.parse(body), EMAIL);
});

test("a get is a GET without a key", async (t) => {
  const server = await serve(t, [FOUND]);
  await clientOf(server).get("em_1");
  const [{ method, url, headers, body }] = server.requests;
  assert.equal(`${method} ${url}`, "GET /emails/em_1");
  assert.equal(headers["idempotency-key"], undefined);
  assert.equal(body, "");
});

test("each send has a random key of its own", async (t) => {
  const server = await serve(t, [ACCEPTED]);
  const client = clientOf(server);
  await Promise.all([client.send(EMAIL), client.send(EMAIL, { idempotencyKey: undefined })]);
  const [first, second] = server.requests.map(({ headers }) => headers["idempotency-key"]);
  assert.match(first, UUID);
  assert.match(second, UUID);
  assert.notEqual(first, second);
});

test("members get the server's names, and names inside headers and variables stay", async (t) => {
  const server = await serve(t, [ACCEPTED]);
  await clientOf(server).send({
    ...EMAIL,
    to: ["Ada <ada@example.net>", "żółw@example.net"],
    cc: undefined,
    bcc: null,
    replyTo: "help@example.com",
    headers: { "X-replyTo": "1" },
    variables: { replyTo: 1, nested: { contentId: null } },
    tags: ["a", "b"],
    attachments: [
      { filename: "a.txt", content: Buffer.from("Total: 42.00\n") },
      new Attachment({ filename: "b.png", content: new Uint8Array([0, 255]), contentType: "image/png", contentId: "b" }),
    ],
  });
  assert.deepEqual(JSON.parse(server.requests[0].body), {
    ...EMAIL,
    to: ["Ada <ada@example.net>", "żółw@example.net"],
    reply_to: "help@example.com",
    headers: { "X-replyTo": "1" },
    variables: { replyTo: 1, nested: { contentId: null } },
    tags: ["a", "b"],
    attachments: [
      { filename: "a.txt", content: "VG90YWw6IDQyLjAwCg==" },
      { filename: "b.png", content: "AP8=", content_type: "image/png", content_id: "b" },
    ],
  });
});

test("a username and a password are sent as HTTP Basic, in UTF-8", async (t) => {
  const server = await serve(t, [FOUND]);
  await clientOf(server, { token: undefined, username: "smtp_1", password: "pä:ss\r\n" }).get("em_1");
  const [, encoded] = server.requests[0].headers.authorization.split("Basic ");
  assert.equal(Buffer.from(encoded, "base64").toString(), "smtp_1:pä:ss\r\n");
});

for (const [ending, path] of [["", ""], ["/", ""], ["/mail", "/mail"], ["/mail//", "/mail"], ["/@x/", "/@x"]]) {
  test(`a base URL may end with "${ending}"`, async (t) => {
    const server = await serve(t, [FOUND]);
    await clientOf({ url: server.url + ending }).get("em_1");
    await clientOf({ url: new URL(server.url + ending) }).get("em_1");
    assert.deepEqual(server.requests.map(({ url }) => url), [`${path}/emails/em_1`, `${path}/emails/em_1`]);
  });
}

test("a base URL may have an IPv6 address", async (t) => {
  const server = await serve(t, [FOUND], "::1");
  assert.equal((await clientOf(server).get("em_1")).id, "em_1");
});

test("an own fetch gets the request, and is told to follow no redirect and to use no cache", async () => {
  const calls = [];
  const fetch = async (url, init) => {
    calls.push({ url, init });
    return new Response('{"id": "em_1", "status": "queued"}', { status: 200 });
  };
  await new Postroad({ baseUrl: "https://mail.example.com", token: "pr_live_x", fetch }).get("em_1");
  assert.equal(calls[0].url, "https://mail.example.com/emails/em_1");
  assert.equal(calls[0].init.redirect, "manual");
  assert.equal(calls[0].init.cache, "no-store");
});

test("printing a client shows no secret", () => {
  for (const secret of [{ token: "s3cret" }, { username: "u", password: "s3cret" }]) {
    const client = new Postroad({ baseUrl: "https://mail.example.com", ...secret });
    const printed = inspect(client, { depth: null, showHidden: true, getters: true }) + JSON.stringify(client) + client;
    assert.doesNotMatch(printed, /s3cret|czNjcmV0|dTpzM2NyZXQ=/);
  }
});
