// The client: two calls, each of them one request that may be repeated, and one that repeats the second.

import { crypto } from "#platform";
import { readAnswer } from "./answer.js";
import { headerValue, messageId, onlyKnown } from "./arguments.js";
import { emailToJson } from "./email.js";
import { exchange } from "./exchange.js";
import { nonNegative, readOptions } from "./options.js";
import { readMessage, readReceipt } from "./records.js";
import { untilFinal, withRetries } from "./retry.js";
import { VERSION } from "./version.js";

class Postroad {
  // Private fields: printing a client shows none of them.
  #base;
  #authorization;
  #limits;
  #fetch;

  constructor(options) {
    const { base, authorization, limits, fetch } = readOptions(options);
    this.#base = base;
    this.#authorization = authorization;
    this.#limits = limits;
    this.#fetch = fetch;
  }

  async send(email, options = {}) {
    onlyKnown(options, ["idempotencyKey", "signal"], "options of send");
    const idempotencyKey = headerValue(options.idempotencyKey ?? crypto.randomUUID(), "idempotencyKey");
    const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    const init = { method: "POST", headers, body: emailToJson(email) };
    return this.#call("/emails", init, readReceipt, { idempotencyKey, signal: options.signal });
  }

  async get(id, options = {}) {
    onlyKnown(options, ["signal"], "options of get");
    return this.#call(`/emails/${messageId(id)}`, { method: "GET" }, readMessage, { signal: options.signal });
  }

  async wait(id, options = {}) {
    onlyKnown(options, ["timeout", "signal"], "options of wait");
    const { timeout = 300_000, signal } = options;
    messageId(id);
    return untilFinal(() => this.get(id, { signal }), { id, timeout: nonNegative(timeout, "timeout"), signal });
  }

  #call(path, init, read, { idempotencyKey, signal }) {
    const headers = {
      Accept: "application/json",
      Authorization: this.#authorization,
      "User-Agent": `postroad-javascript/${VERSION}`,
      ...init.headers,
    };
    const request = { fetch: this.#fetch, url: this.#base + path, init: { ...init, headers }, signal };
    const attempt = async (timeout) => {
      const { answer, failure } = await exchange(request, timeout);
      return failure ? { failure } : readAnswer(answer, read);
    };
    return withRetries(attempt, this.#limits, { idempotencyKey, signal });
  }
}

export { Postroad };
