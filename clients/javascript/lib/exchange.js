"use strict";
// One attempt: a request, and the whole of its answer or why there is none.

const { setMaxListeners } = require("node:events");

const MOST_BYTES = 4 * 1024 * 1024;

const NOT_REACHED = {
  EAI_AGAIN: "its name cannot be looked up",
  ECONNREFUSED: "connection refused",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ENOTFOUND: "there is no host of this name",
};

// fetch has limits of its own; 10 seconds for connecting is the one that people meet.
const TIMEOUTS = ["ETIMEDOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT"];

// What the parser of HTTP and the one of gzip say of an answer that will not be better the next time:
// codes, or only a name since Node.js 24.
const UNREADABLE = /^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW$|Z_)/;

/**
 * Gives `{ answer }` or `{ failure }`, what an error needs to be made of it.
 * Throws only when the application's `signal` says so, and then its reason.
 */
async function exchange({ fetch, url, init, signal }, timeout) {
  signal?.throwIfAborted();
  if (signal) setMaxListeners(0, signal); // One for a whole application has many calls, which is no leak.
  const giveUp = new AbortController();
  const onAbort = () => giveUp.abort(signal.reason);
  signal?.addEventListener("abort", onAbort);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    giveUp.abort();
  }, timeout);
  try {
    // Some frameworks put a cache in front of the global fetch, and a status must not come from there.
    const response = await fetch(url, { ...init, cache: "no-store", redirect: "manual", signal: giveUp.signal });
    return { answer: await readWhole(response) };
  } catch (error) {
    signal?.throwIfAborted();
    if (isLate) return { failure: { code: "timed_out", text: `no complete answer within ${seconds(timeout)} s` } };
    return { failure: { ...describe(error, new URL(url).host), cause: error } };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Reads no more than is allowed; leaving the loop early cancels the rest, and with it the connection. */
async function readWhole(response) {
  const { status, headers, redirected } = response;
  const chunks = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MOST_BYTES) break;
    chunks.push(chunk);
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks));
  return { status, headers, redirected, text, isTooLarge: size > MOST_BYTES };
}

function describe(error, host) {
  // fetch says "fetch failed" or "terminated", and hides the reason in the cause.
  const reason = error?.cause ?? error;
  if (TIMEOUTS.includes(reason?.code)) return { code: "timed_out", text: `${host} did not answer in time` };
  if (UNREADABLE.test(reason?.code ?? reason?.name)) {
    return { code: "unexpected_response", text: `the answer of ${host} cannot be read: ${reason.message}` };
  }
  const notReached = NOT_REACHED[reason?.code];
  return {
    code: "connection_failed",
    text: notReached
      ? `could not connect to ${host}: ${notReached}`
      : `the connection to ${host} failed: ${reason?.message || reason?.code || error?.message}`,
  };
}

function seconds(milliseconds) {
  return Number((milliseconds / 1000).toPrecision(2));
}

module.exports = { exchange };
