// One attempt: a request, and the whole of its response or why there is none.

import { allowManyListeners } from "#platform";

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

// What the parser of HTTP and the one of gzip say of a response that will not be better the next time:
// codes, or only a name since Node.js 24.
const UNREADABLE = /^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW$|Z_)/;

/**
 * Gives `{ answer }` or `{ failure }`, what an error needs to be made of it.
 * Throws only when the application's `signal` says so, and then its reason.
 */
async function exchange({ fetch, url, init, signal }, timeout) {
  signal?.throwIfAborted();
  if (signal) allowManyListeners(signal);
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
    const response = await fetch(url, { ...init, ...noCache(), redirect: "manual", signal: giveUp.signal });
    return { answer: await readWhole(response) };
  } catch (error) {
    signal?.throwIfAborted();
    if (isLate) return { failure: { code: "timed_out", text: `no complete response within ${seconds(timeout)} s` } };
    return { failure: { ...describe(error, new URL(url).host), cause: error } };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Some runtimes of workers have no such option, and refuse a request that has. */
function noCache() {
  return "cache" in globalThis.Request.prototype ? { cache: "no-store" } : {};
}

/** Reads no more than is allowed; the rest is cancelled, and with it the connection. */
async function readWhole(response) {
  const { status, headers, redirected } = response;
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) break;
    size += value.byteLength;
    if (size > MOST_BYTES) {
      await reader.cancel();
      break;
    }
    text += decoder.decode(value, { stream: true });
  }
  return { status, headers, redirected, text: text + decoder.decode(), isTooLarge: size > MOST_BYTES };
}

function describe(error, host) {
  // fetch says "fetch failed" or "terminated", and hides the reason in the cause.
  const reason = error?.cause ?? error;
  if (TIMEOUTS.includes(reason?.code)) return { code: "timed_out", text: `${host} did not respond in time` };
  if (UNREADABLE.test(reason?.code ?? reason?.name)) {
    return { code: "unexpected_response", text: `the response of ${host} cannot be read: ${reason.message}` };
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

export { exchange };
