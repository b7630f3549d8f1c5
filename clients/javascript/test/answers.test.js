// What the client makes of answers: receipts and messages, refusals, and what is neither.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import * as postroad from "../index.js";
import { ACCEPTED, EMAIL, clientOf, refusal, serve } from "./support/server.js";

const { PostroadError } = postroad;
const UNEXPECTED = "unexpected_response: not a response of Postroad";

/** What becomes of one attempt to send that is answered so. */
async function answered(t, step, options) {
  const server = await serve(t, [step]);
  return clientOf(server, { maxElapsed: 0, ...options }).send(EMAIL, { idempotencyKey: "key-1" });
}

/** The error of the same. */
async function failed(t, step, options) {
  const error = await answered(t, step, options).then(() => assert.fail("it did not fail"), (reason) => reason);
  assert.ok(error instanceof PostroadError, error.stack);
  return error;
}

test("a receipt has everything that the server said", async (t) => {
  const receipt = await answered(t, {
    status: 202,
    json: {
      id: "em_1", status: "queued", source: "api",
      from: "hello@example.com", to: ["a@example.net"], cc: [], bcc: ["b@example.net"],
      reply_to: "c@example.com", subject: "Hello", billing_status: "reserved", recipient_count: 2, credits_reserved: 2,
      headers: { "X-A": "1" }, tags: ["t"], request_id: "req_1", unheard_of: 1,
      attachments: [{ filename: "a.txt", content_type: "text/plain", size: 3, content_id: null }],
    },
  });
  assert.deepEqual(receipt, {
    id: "em_1", status: "queued", source: "api",
    from: "hello@example.com", to: ["a@example.net"], cc: [], bcc: ["b@example.net"],
    replyTo: "c@example.com", subject: "Hello", billingStatus: "reserved", recipientCount: 2, creditsReserved: 2,
    headers: { "X-A": "1" }, tags: ["t"], requestId: "req_1", sendAt: null, expiresAt: null, metadata: {},
    attachments: [{ filename: "a.txt", contentType: "text/plain", size: 3, contentId: null }],
  });
});

test("a receipt has a list where replies go to several addresses", async (t) => {
  const replies = ["c@example.com", "d@example.com"];
  assert.deepEqual((await answered(t, { status: 202, json: { id: "em_1", reply_to: replies } })).replyTo, replies);
  await failed(t, { status: 202, json: { id: "em_1", reply_to: [1] } });
});

test("what a receipt does not say is empty", async (t) => {
  assert.deepEqual(await answered(t, { status: 200, json: { id: "em_1" } }), {
    id: "em_1", status: null, source: null, from: null, to: [], cc: [], bcc: [], replyTo: null, subject: null,
    billingStatus: null, recipientCount: null, creditsReserved: null, headers: {}, tags: [], attachments: [], requestId: null, sendAt: null, expiresAt: null, metadata: {},
  });
});

test("a message has times, and words that are new", async (t) => {
  const recipient = {
    id: "rcp_1", email: "a@example.net", status: "pondering", billing_status: "settled", attempt_count: 3,
    last_smtp_code: 250, last_smtp_response: "ok", delivered_at: "2026-01-31T12:00:01.250Z", bounced_at: null,
  };
  const json = {
    id: "em_1", status: "pondering", source: "test", from: "hello@example.com", subject: "Hello", billing_status: "settled",
    recipient_count: 1, credits_reserved: 1, created_at: "2026-01-31T13:00:00+01:00", recipients: [recipient],
    request_id: "req_1",
  };
  const server = await serve(t, [{ status: 200, json }]);
  assert.deepEqual(await clientOf(server).get("em_1"), {
    id: "em_1", status: "pondering", source: "test", from: "hello@example.com", subject: "Hello", billingStatus: "settled",
    recipientCount: 1, creditsReserved: 1, createdAt: new Date("2026-01-31T12:00:00Z"), requestId: "req_1", sendAt: null, expiresAt: null, metadata: {},
    recipients: [{
      id: "rcp_1", email: "a@example.net", status: "pondering", billingStatus: "settled", attemptCount: 3,
      lastSmtpCode: 250, lastSmtpResponse: "ok", deliveredAt: new Date("2026-01-31T12:00:01.250Z"), bouncedAt: null, queue: null,
    }],
  });
});

for (const [what, json] of Object.entries({
  "an array": [], "null": null, "a string": "em_1", "no id": {}, "an empty id": { id: "" }, "a number as id": { id: 1 },
  "a string in the place of a list": { id: "em_1", to: "a@example.net" }, "a number in a list": { id: "em_1", tags: [1] },
  "a fraction of a recipient": { id: "em_1", recipient_count: 1.5 }, "a list of headers": { id: "em_1", headers: [] },
  "a number as header": { id: "em_1", headers: { a: 1 } }, "an attachment that is none": { id: "em_1", attachments: [null] },
})) {
  test(`${what} is no receipt`, async (t) => {
    const error = await failed(t, { status: 202, json });
    assert.equal(error.code, "unexpected_response");
    assert.equal(error.isRetryable, false);
  });
}

for (const created_at of ["yesterday", "2026-01-31", "2026-13-31T12:00:00Z", 1]) {
  test(`${created_at} is no time`, async (t) => {
    const server = await serve(t, [{ status: 200, json: { id: "em_1", status: "queued", created_at } }]);
    await assert.rejects(clientOf(server).get("em_1"), { code: "unexpected_response", idempotencyKey: null });
  });
}

test("a message without a status is none", async (t) => {
  const server = await serve(t, [{ status: 200, json: { id: "em_1" } }]);
  await assert.rejects(clientOf(server).get("em_1"), { code: "unexpected_response", status: 200 });
});

test("an error has what the server said", async (t) => {
  const error = await failed(t, refusal(402, "insufficient_credits", { "Retry-After": "7" }));
  assert.equal(error.name, "InsufficientCreditsError");
  assert.equal(error.message, "402 insufficient_credits: because of insufficient_credits (req_1)");
  assert.deepEqual([error.status, error.code], [402, "insufficient_credits"]);
  assert.deepEqual([error.requestId, error.retryAfter, error.idempotencyKey], ["req_1", 7, "key-1"]);
  assert.deepEqual([error.isRetryable, error.isInsufficientCredits, error.isIdempotencyConflict], [false, true, false]);
  assert.match(error.stack, /^InsufficientCreditsError: 402 insufficient_credits/);
});

for (const [status, code, name] of [
  [400, "invalid_request", "InvalidRequestError"], [408, "x", "InvalidRequestError"], [413, "x", "InvalidRequestError"],
  [415, "x", "InvalidRequestError"], [422, "x", "InvalidRequestError"], [401, "unauthorized", "AuthenticationError"],
  [402, "x", "InsufficientCreditsError"], [403, "insufficient_credits", "InsufficientCreditsError"],
  [403, "forbidden", "PermissionDeniedError"], [404, "not_found", "NotFoundError"], [409, "conflict", "IdempotencyError"],
  [429, "rate_limited", "RateLimitError"], [500, "internal_error", "ServerError"], [599, "timed_out", "ServerError"],
]) {
  test(`${status} ${code} is a ${name}`, async (t) => {
    const error = await failed(t, refusal(status, code));
    assert.equal(error.constructor, postroad[name]);
    assert.equal(error.name, name);
  });
}

for (const [status, name] of [
  [202, "UnexpectedResponseError"], [302, "UnexpectedResponseError"], [404, "NotFoundError"], [502, "ServerError"],
]) {
  test(`a page with ${status} is a ${name}`, async (t) => {
    assert.equal((await failed(t, { status, text: "<html>" })).constructor, postroad[name]);
  });
}

test("each helper knows its errors", () => {
  const error = (status, code) => new PostroadError("", { status, code });
  for (const status of [408, 429, 500, 502, 503, 504]) assert.equal(error(status, "x").isRetryable, true);
  for (const code of ["idempotency_in_progress", "connection_failed", "timed_out"]) {
    assert.equal(error(null, code).isRetryable, true);
  }
  for (const status of [400, 401, 404, 409, 501, 505]) assert.equal(error(status, "x").isRetryable, false);
  assert.equal(error(409, "idempotency_conflict").isIdempotencyConflict, true);
  assert.equal(error(409, "conflict").isIdempotencyConflict, false);
});

for (const [what, step, text] of [
  ["a page of a proxy", { status: 502, text: "<h1>Bad\n\n\0Gateway</h1>" }, `502 ${UNEXPECTED}: <h1>Bad Gateway</h1>`],
  ["an empty 500", { status: 500, text: "" }, `500 ${UNEXPECTED}: it is empty`],
  ["a 204", { status: 204 }, `204 ${UNEXPECTED}: it is empty`],
  ["an empty 202", { status: 202, text: "" }, `202 ${UNEXPECTED}: it is empty`],
  ["an error without a code", { status: 400, json: { error: "no" } }, `400 ${UNEXPECTED}: {"error":"no"}`],
  ["an error with an empty code", { status: 400, json: { code: "" } }, `400 ${UNEXPECTED}: {"code":""}`],
  ["an error without a text", { status: 400, json: { code: "new" } }, "400 new: the server gives no reason"],
  ["an error that is null", { status: 400, json: null }, `400 ${UNEXPECTED}: null`],
]) {
  test(`${what} is explained`, async (t) => {
    const error = await failed(t, { ...step, headers: { "X-Request-ID": "req_h" } });
    assert.equal(error.message, `${text} (req_h)`);
    assert.equal(error.requestId, "req_h");
  });
}

test("of a long page at most 200 characters are quoted, and none is cut in half", async (t) => {
  const error = await failed(t, { status: 500, text: "x" + "📯".repeat(300) });
  assert.ok(error.message.endsWith(`: x${"📯".repeat(199)}`));
});

test("a redirect is named, and not followed", async (t) => {
  const other = await serve(t, [ACCEPTED]);
  const error = await failed(t, { status: 307, headers: { Location: `${other.url}/${"a".repeat(300)}` } });
  assert.equal(error.code, "unexpected_response");
  assert.ok(error.message.includes(` to ${other.url}/aaa`));
  assert.match(error.message, /redirects are not followed$/);
  assert.ok(error.message.length < 300);
  assert.equal(other.requests.length, 0);
});

test("an own fetch that follows a redirect all the same is found out", async (t) => {
  const other = await serve(t, [ACCEPTED]);
  const fetch = (url, init) => globalThis.fetch(url, { ...init, redirect: "follow" });
  const error = await failed(t, { status: 307, headers: { Location: other.url } }, { fetch });
  assert.match(error.message, /followed a redirect/);
});

test("an answer that came compressed is read", async (t) => {
  const text = gzipSync(JSON.stringify({ id: "em_zip" }));
  assert.equal((await answered(t, { status: 202, headers: { "Content-Encoding": "gzip" }, text })).id, "em_zip");
});

for (const [what, step] of Object.entries({
  "an answer that is not compressed as it says": { status: 202, headers: { "Content-Encoding": "gzip" }, text: "no gzip" },
  "a head without end": { status: 202, headers: { "X-Long": "x".repeat(70_000) }, text: "" },
})) {
  test(`${what} cannot be read, and would be no better the next time`, async (t) => {
    const error = await failed(t, step);
    assert.match(error.message, /^unexpected_response: the response of 127\.0\.0\.1:\d+ cannot be read: /);
    assert.equal(error.isRetryable, false);
  });
}

test("a small answer that becomes a large one is not read to its end", async (t) => {
  const text = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const error = await failed(t, { status: 202, headers: { "Content-Encoding": "gzip" }, text });
  assert.match(error.message, /larger than 4 MiB/);
});

test("an answer in chunks is read", async (t) => {
  const receipt = await answered(t, (response) => {
    response.writeHead(202);
    response.write('{"id": ');
    setImmediate(() => response.end('"em_chunks"}'));
  });
  assert.equal(receipt.id, "em_chunks");
});

test("an answer of 4 MiB is read, and one byte more is not", async (t) => {
  const text = JSON.stringify({ id: "em_1" }).padEnd(4 * 1024 * 1024);
  assert.equal((await answered(t, { status: 202, text })).id, "em_1");
  assert.match((await failed(t, { status: 202, text: `${text} ` })).message, /larger than 4 MiB/);
});

test("the rest of an answer that is too large is given up, and the connection with it", async (t) => {
  let closed;
  const error = await failed(t, (response) => {
    closed = once(response, "close");
    const fill = () => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024))); // Until the pipe is full.
    };
    response.writeHead(503).on("drain", fill);
    fill();
  });
  assert.equal(error.code, "unexpected_response");
  assert.equal(error.isRetryable, true);
  await closed;
});
