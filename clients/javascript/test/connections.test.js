// No response at all: nobody there, too slow, or called off by the application.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { ConnectionFailedError } from "../index.js";
import { clock } from "../lib/clock.js";
import { stopClock } from "./support/clock.js";
import { EMAIL, FOUND, clientOf, refusal, serve } from "./support/server.js";

const hang = () => {};
const trickle = (response) => {
  response.writeHead(202);
  const timer = setInterval(() => response.write(" "), 5);
  response.on("close", () => clearInterval(timer));
};

test("nobody listens", async (t) => {
  stopClock(t);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(clientOf({ url: `http://127.0.0.1:${port}` }, { maxElapsed: 3_000 }).get("em_1"), (error) => {
    assert.ok(error instanceof ConnectionFailedError);
    assert.equal(error.message, `connection_failed: could not connect to 127.0.0.1:${port}: connection refused (4 attempts)`);
    assert.deepEqual([error.status, error.requestId, error.retryAfter], [null, null, null]);
    assert.ok(error.cause instanceof TypeError);
    return true;
  });
});

test("a port that fetch does not go to", async () => {
  const message = "connection_failed: the connection to 127.0.0.1:9 failed: bad port";
  await assert.rejects(clientOf({ url: "http://127.0.0.1:9" }, { maxElapsed: 0 }).get("em_1"), { message });
});

test("what is not HTTP", async (t) => {
  const server = createServer((socket) => socket.on("error", hang).end("220 mail.example.com ESMTP\r\n")).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;
  await assert.rejects(clientOf({ url }, { maxElapsed: 0 }).get("em_1"), { code: "unexpected_response", status: null });
});

for (const [what, step] of Object.entries({ "a server that says nothing": hang, "an answer that trickles": trickle })) {
  test(`${what} has the time of one attempt`, async (t) => {
    stopClock(t);
    const server = await serve(t, [step]);
    const message = "timed_out: no complete response within 0.03 s (2 attempts)";
    await assert.rejects(clientOf(server, { timeout: 30, maxElapsed: 1_000 }).send(EMAIL), { message, status: null });
  });
}

test("an attempt gets no more than what is left of maxElapsed", async (t) => {
  const pauses = stopClock(t);
  const server = await serve(t, [refusal(503, "service_unavailable", { "Retry-After": "20" }), hang]);
  const message = "timed_out: no complete response within 0.025 s (2 attempts)";
  await assert.rejects(clientOf(server, { maxElapsed: 20_400 }).send(EMAIL), { message });
  assert.deepEqual(pauses, [20_375]);
});

test("a parser of HTTP that gives no code, as in Node.js 24", async () => {
  const fetch = async () => {
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("no HTTP"), { name: "HTTPParserError", code: undefined }) });
  };
  const client = clientOf({ url: "http://127.0.0.1:1" }, { fetch, maxElapsed: 0 });
  const message = "unexpected_response: the response of 127.0.0.1:1 cannot be read: no HTTP";
  await assert.rejects(client.get("em_1"), { message });
});

for (const code of ["ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"]) {
  test(`${code} of fetch itself is a timeout`, async () => {
    const fetch = async () => {
      throw new TypeError("fetch failed", { cause: Object.assign(new Error("too slow"), { code }) });
    };
    const client = clientOf({ url: "http://127.0.0.1:1" }, { fetch, maxElapsed: 0 });
    await assert.rejects(client.get("em_1"), { code: "timed_out", message: "timed_out: 127.0.0.1:1 did not respond in time" });
  });
}

for (const [what, step] of Object.entries({ "waits for an answer": hang, "reads one": trickle })) {
  test(`a call that is aborted while it ${what}`, async (t) => {
    const controller = new AbortController();
    const reason = new Error("the user went away");
    const server = await serve(t, [(response) => {
      step(response);
      setTimeout(() => controller.abort(reason), 10);
    }]);
    // Without retries, so that the reason cannot come from the pause before one.
    const call = clientOf(server, { maxElapsed: 0 }).send(EMAIL, { signal: controller.signal });
    await assert.rejects(call, (error) => error === reason);
    assert.equal(server.requests.length, 1);
  });
}

test("a call that is aborted between two attempts", async (t) => {
  const controller = new AbortController();
  const server = await serve(t, [refusal(503, "service_unavailable", { "Retry-After": "30" })]);
  const { sleep } = clock;
  t.after(() => Object.assign(clock, { sleep }));
  clock.sleep = (milliseconds, signal) => {
    setImmediate(() => controller.abort("enough"));
    return sleep(milliseconds, signal);
  };
  await assert.rejects(clientOf(server).get("em_1", { signal: controller.signal }), (error) => error === "enough");
  assert.equal(server.requests.length, 1);
});

test("a call that was aborted before it began", async (t) => {
  const server = await serve(t, [hang]);
  await assert.rejects(clientOf(server).get("em_1", { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.equal(server.requests.length, 0);
});

test("one signal may end many calls at the same time, and Node.js has nothing to warn of", async (t) => {
  const warnings = [];
  const listen = (warning) => warnings.push(warning.message);
  process.on("warning", listen);
  t.after(() => process.off("warning", listen));
  const client = clientOf(await serve(t, [FOUND]));
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 20 }, () => client.get("em_1", { signal })));
  assert.deepEqual(warnings, []);
});

test("a runtime whose requests have no cache is not asked for one", async (t) => {
  const inits = [];
  const fetch = async (url, init) => {
    inits.push(init);
    return Response.json({ id: "em_1", status: "queued" });
  };
  const { Request } = globalThis;
  t.after(() => Object.assign(globalThis, { Request }));
  const client = clientOf({ url: "http://127.0.0.1:1" }, { fetch });
  await client.get("em_1");
  globalThis.Request = class {};
  await client.get("em_1");
  assert.deepEqual(inits.map(({ cache }) => cache), ["no-store", undefined]);
});
