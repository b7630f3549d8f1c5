"use strict";
// The client: two calls, each of them one request that may be repeated.

const { randomUUID } = require("node:crypto");
const { version } = require("../package.json");
const { readAnswer } = require("./answer.js");
const { headerValue, messageId, onlyKnown } = require("./arguments.js");
const { emailToJson } = require("./email.js");
const { exchange } = require("./exchange.js");
const { readOptions } = require("./options.js");
const { readMessage, readReceipt } = require("./records.js");
const { withRetries } = require("./retry.js");

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
    const idempotencyKey = headerValue(options.idempotencyKey ?? randomUUID(), "idempotencyKey");
    const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    const init = { method: "POST", headers, body: emailToJson(email) };
    return this.#call("/emails", init, readReceipt, { idempotencyKey, signal: options.signal });
  }

  async get(id, options = {}) {
    onlyKnown(options, ["signal"], "options of get");
    return this.#call(`/emails/${messageId(id)}`, { method: "GET" }, readMessage, { signal: options.signal });
  }

  #call(path, init, read, { idempotencyKey, signal }) {
    const headers = {
      Accept: "application/json",
      Authorization: this.#authorization,
      "User-Agent": `postroad-javascript/${version}`,
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

module.exports = { Postroad };
