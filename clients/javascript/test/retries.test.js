// When the client tries again, how long it waits, and when it stops.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TimedOutError } from "../index.js";
import { readRetryAfter } from "../lib/retry-after.js";
import { stopClock } from "./support/clock.js";
import { ACCEPTED, EMAIL, FOUND, clientOf, refusal, serve } from "./support/server.js";

const BUSY = refusal(503, "service_unavailable");
const NOON = Date.UTC(2026, 0, 31, 12);

const reset = (response) => response.socket.resetAndDestroy();
const close = (response) => response.socket.end();
const halfOfIt = (response) => {
  response.writeHead(202, { "Content-Length": 1000 }).write('{"id": "em_half"');
  setImmediate(() => response.socket.end());
};
const noLastChunk = (response) => {
  response.writeHead(202).write('{"id": "em_half"}');
  setImmediate(() => response.socket.end());
};

for (const [what, step] of Object.entries({
  "a 429": refusal(429, "rate_limited"),
  "a 408": { status: 408, text: "<h1>Request Time-out</h1>" },
  "a 500": refusal(500, "internal_error"),
  "a 502 of a proxy": { status: 502, text: "<h1>Bad Gateway</h1>" },
  "a 504 of a proxy": { status: 504, text: "<h1>Gateway Time-out</h1>" },
  "a 503": BUSY,
  "a 503 of a proxy": { status: 503, text: "<h1>Busy</h1>" },
  "a request in progress": refusal(409, "idempotency_in_progress"),
  "a connection that is reset": reset,
  "a connection that is closed": close,
  "an answer that is cut short": halfOfIt,
  "an answer without its last chunk": noLastChunk,
})) {
  test(`${what} is tried again, with the same key and the same bytes`, async (t) => {
    const pauses = stopClock(t);
    const server = await serve(t, [step, step, ACCEPTED]);
    assert.equal((await clientOf(server).send(EMAIL)).id, "em_1");
    assert.deepEqual(pauses, [375, 750]);
    const [first, ...others] = server.requests;
    assert.equal(others.length, 2);
    for (const { headers, body } of others) {
      assert.equal(headers["idempotency-key"], first.headers["idempotency-key"]);
      assert.equal(body, first.body);
    }
  });
}

for (const [status, code] of [
  [400, "invalid_request"], [409, "idempotency_conflict"], [402, "insufficient_credits"], [501, "x"], [505, "x"],
]) {
  test(`${status} ${code} is not tried again`, async (t) => {
    const pauses = stopClock(t);
    const server = await serve(t, [refusal(status, code)]);
    await assert.rejects(clientOf(server).send(EMAIL), { status, code });
    assert.equal(server.requests.length, 1);
    assert.deepEqual(pauses, []);
  });
}

test("a get is tried again as well", async (t) => {
  stopClock(t);
  const server = await serve(t, [reset, BUSY, FOUND]);
  assert.equal((await clientOf(server).get("em_1")).status, "delivered");
});

for (const [random, expected] of [[0, [250, 500, 1000, 2000, 4000, 4000]], [1, [500, 1000, 2000, 4000, 8000, 8000]]]) {
  test(`pauses double up to 8 seconds, with chance ${random}`, async (t) => {
    const pauses = stopClock(t, { random });
    const server = await serve(t, [BUSY]);
    await assert.rejects(clientOf(server, { maxElapsed: random ? 24_000 : 12_000 }).send(EMAIL), { status: 503 });
    assert.deepEqual(pauses, expected);
  });
}

test("the last error counts the attempts", async (t) => {
  stopClock(t);
  const server = await serve(t, [BUSY]);
  const message = "503 service_unavailable: because of service_unavailable (req_1, 14 attempts)";
  await assert.rejects(clientOf(server).send(EMAIL, { idempotencyKey: "key-1" }), { message, idempotencyKey: "key-1" });
  assert.equal(server.requests.length, 14); // in a minute, with pauses of three quarters
});

test("without time for retries there is one attempt, which has its own", async (t) => {
  stopClock(t);
  const server = await serve(t, [BUSY]);
  await assert.rejects(clientOf(server, { maxElapsed: 0 }).send(EMAIL), { status: 503 });
  assert.equal(server.requests.length, 1);
});

test("Retry-After is waited for, and the back-off on top of it", async (t) => {
  const pauses = stopClock(t, { now: NOON });
  const inTenSeconds = new Date(NOON + 10_000).toUTCString();
  const server = await serve(t, [
    refusal(429, "rate_limited", { "Retry-After": "2" }),
    refusal(503, "service_unavailable", { "Retry-After": inTenSeconds }),
    ACCEPTED,
  ]);
  await clientOf(server).send(EMAIL);
  assert.deepEqual(pauses, [2375, 10_000 - 2375 + 750]);
});

test("a wait that would end too late is not begun", async (t) => {
  const pauses = stopClock(t);
  const server = await serve(t, [refusal(429, "warmup_limited", { "Retry-After": "43200" })]);
  await assert.rejects(clientOf(server).send(EMAIL), { code: "warmup_limited", retryAfter: 43200, isRetryable: true });
  assert.deepEqual(pauses, []);
});

test("everything together takes no longer than maxElapsed", async (t) => {
  const pauses = stopClock(t, { random: 1 });
  const server = await serve(t, [BUSY]);
  await assert.rejects(clientOf(server, { maxElapsed: 20_000 }).send(EMAIL), { status: 503 });
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 8000]);
});

test("a wait polls further and further apart, and once more when its time is over", async (t) => {
  const pauses = stopClock(t);
  const queued = { status: 200, json: { id: "em_1", status: "queued", recipients: [{ status: "delivered" }, { status: "deferred" }] } };
  const server = await serve(t, [queued]);
  const error = await clientOf(server).wait("em_1", { timeout: 41_000 }).catch((reason) => reason);
  assert.ok(error instanceof TimedOutError);
  assert.equal(error.message, "timed_out: em_1 is not final after 41 s");
  assert.equal(error.lastMessage.recipients.length, 2);
  assert.deepEqual(pauses, [1000, 1500, 2250, 3375, 5062.5, 7593.75, 10_000, 10_000, 218.75]);
  assert.equal(server.requests.length, 10);
});

test("a wait is over when every recipient is final, and 5 minutes are there by themselves", async (t) => {
  const pauses = stopClock(t);
  const none = { status: 200, json: { id: "em_1", status: "queued" } };
  const client = clientOf(await serve(t, [none, none, BUSY, FOUND]));
  assert.equal((await client.wait("em_1")).status, "delivered");
  assert.deepEqual(pauses, [1000, 1500, 375]);
  const forever = clientOf(await serve(t, [none]));
  await assert.rejects(forever.wait("em_1"), { message: "timed_out: em_1 is not final after 300 s" });
});

test("a wait that is aborted while it pauses, and one without time", async (t) => {
  const none = { status: 200, json: { id: "em_1", status: "queued" } };
  const server = await serve(t, [none]);
  const controller = new AbortController();
  setTimeout(() => controller.abort("enough"), 50);
  const waiting = clientOf(server).wait("em_1", { signal: controller.signal });
  await assert.rejects(waiting, (error) => error === "enough");
  const before = server.requests.length;
  await assert.rejects(clientOf(server).wait("em_1", { timeout: 0 }), TimedOutError);
  assert.equal(server.requests.length, before + 1);
});

test("two calls at once do not mix their keys", async (t) => {
  stopClock(t);
  const server = await serve(t, [BUSY, BUSY, ACCEPTED]);
  const client = clientOf(server);
  await Promise.all(["a", "b"].map((key) => client.send({ ...EMAIL, subject: key }, { idempotencyKey: key })));
  assert.equal(server.requests.length, 4);
  for (const { headers, body } of server.requests) assert.equal(headers["idempotency-key"], JSON.parse(body).subject);
});

for (const [value, seconds] of [
  [null, null], ["", null], ["0", 0], ["7", 7], ["007", 7], ["-5", null], ["+5", null], ["1.5", null], ["1e3", null],
  ["0x10", null], ["5, 6", null], ["soon", null], ["9".repeat(400), Number.MAX_SAFE_INTEGER],
  ["Sat, 31 Jan 2026 12:01:30 GMT", 90], ["Saturday, 31-Jan-26 12:01:30 GMT", 90],
  ["Sat, 31 Jan 2026 11:59:59 GMT", null], ["Sat, 31 Jan 2026 12:00:00 GMT", null],
  ["Sat, 99 Foo 2026 12:01:30 GMT", null], ["2026-01-31T12:01:30Z", null],
]) {
  test(`Retry-After: ${String(value).slice(0, 40)}`, (t) => {
    stopClock(t, { now: NOON });
    assert.equal(readRetryAfter(value), seconds);
  });
}
