// The options of a client: read once, refused early.

import { toBase64 } from "#platform";
import { headerValue, onlyKnown, string } from "./arguments.js";

const KNOWN = ["baseUrl", "token", "username", "password", "timeout", "maxElapsed", "fetch"];
const LONGEST_TIMER = 2 ** 31 - 1; // Node.js fires a longer one at once.

function readOptions(options) {
  onlyKnown(options, KNOWN, "options");
  const { timeout = 30_000, maxElapsed = 60_000 } = options;
  if (timeout === 0) throw new TypeError("timeout must be more than 0 milliseconds");
  return {
    base: readBaseUrl(options.baseUrl),
    authorization: readCredential(options),
    limits: { timeout: nonNegative(timeout, "timeout"), maxElapsed: nonNegative(maxElapsed, "maxElapsed") },
    fetch: readFetch(options.fetch),
  };
}

function readBaseUrl(value) {
  const text = value instanceof URL ? value.href : string(value, "baseUrl");
  // Before the parser sees it: it would mend or drop much of what is wrong here.
  if (!/^https?:\/\/[^\s\\/?#@]+(\/[^\s\\?#]*)?$/i.test(text)) {
    throw new TypeError("baseUrl must be http or https, with a host, perhaps a path, and no user, query or fragment");
  }
  const url = new URL(text);
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function readCredential({ token, username, password }) {
  const hasToken = isGiven(token);
  if (hasToken === (isGiven(username) || isGiven(password))) {
    throw new TypeError("give either a token, or a username and a password");
  }
  if (hasToken) return `Bearer ${headerValue(token, "token")}`;
  if (!isGiven(username) || !isGiven(password)) throw new TypeError("username and password must not be empty");
  // HTTP Basic ends the username at the first colon.
  if (string(username, "username").includes(":")) throw new TypeError("username must not have a colon in it");
  return `Basic ${toBase64(new TextEncoder().encode(`${username}:${string(password, "password")}`))}`;
}

/** Whether there is a credential: a variable of the environment that is empty is none. */
function isGiven(value) {
  return value !== undefined && value !== null && value !== "";
}

function nonNegative(value, what) {
  if (typeof value !== "number" || !(value >= 0 && value <= LONGEST_TIMER)) {
    throw new TypeError(`${what} must be a number of milliseconds, not negative and at most ${LONGEST_TIMER}`);
  }
  return value;
}

function readFetch(own) {
  // Looked up at each call, so that whoever replaces the global one later is heard.
  if (own === undefined) return (url, init) => globalThis.fetch(url, init);
  if (typeof own !== "function") throw new TypeError("fetch must be a function");
  return own;
}

export { nonNegative, readOptions };
