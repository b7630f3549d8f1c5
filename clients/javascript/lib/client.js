// The client: sending and reading, with types of their own, and the rest of the API with plain objects.

import { crypto } from "#platform";
import { readAnswer } from "./answer.js";
import { headerValue, messageId, onlyKnown } from "./arguments.js";
import { emailMembers, emailToJson } from "./email.js";
import { exchange } from "./exchange.js";
import { nonNegative, readOptions } from "./options.js";
import { plainReader, readMessage, readReceipt } from "./records.js";
import { makeResources, query } from "./resources.js";
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
    Object.assign(this, makeResources((method, path, details) => this.#plain(method, path, details)));
  }

  async send(email, options = {}) {
    onlyKnown(options, ["idempotencyKey", "signal"], "options of send");
    const idempotencyKey = headerValue(options.idempotencyKey ?? crypto.randomUUID(), "idempotencyKey");
    const headers = { "Content-Type": "application/json", "Idempotency-Key": idempotencyKey };
    const init = { method: "POST", headers, body: emailToJson(email) };
    return this.#call("/emails", init, readReceipt, { idempotencyKey, signal: options.signal });
  }

  async get(id, options = {}) {
    onlyKnown(options, ["includeQueue", "signal"], "options of get");
    const path = `/emails/${messageId(id)}${options.includeQueue ? "?include=queue" : ""}`;
    return this.#call(path, { method: "GET" }, readMessage, { signal: options.signal });
  }

  async wait(id, options = {}) {
    onlyKnown(options, ["timeout", "signal"], "options of wait");
    const { timeout = 300_000, signal } = options;
    messageId(id);
    return untilFinal(() => this.get(id, { signal }), { id, timeout: nonNegative(timeout, "timeout"), signal });
  }

  async sendBatch(emails, options = {}) {
    onlyKnown(options, ["allOrNothing", "idempotencyKey", "signal"], "options of sendBatch");
    if (!Array.isArray(emails)) throw new TypeError("emails must be an array");
    return this.#batch({ emails: emails.map(emailMembers), all_or_nothing: options.allOrNothing }, options);
  }

  async sendTemplateBatch(members, options = {}) {
    onlyKnown(options, ["idempotencyKey", "signal"], "options of sendTemplateBatch");
    return this.#batch(members, options);
  }

  async reschedule(id, sendAt) {
    return this.#plain("PATCH", `/emails/${messageId(id)}`, { body: { send_at: sendAt }, isRepeatable: true });
  }

  async cancel(id) {
    return this.#plain("POST", `/emails/${messageId(id)}/cancel`, { isRepeatable: true });
  }

  async statistics(period) {
    return this.#plain("GET", `/v1/statistics${query({ period })}`, { member: "statistics", isRepeatable: true });
  }

  async account() {
    return this.#plain("GET", "/v1/account", { member: "account", isRepeatable: true });
  }

  #batch(body, { idempotencyKey = crypto.randomUUID(), signal }) {
    const key = headerValue(idempotencyKey, "idempotencyKey");
    const details = { body, member: "results", isRepeatable: true, idempotencyKey: key, signal };
    return this.#plain("POST", "/emails/batch", details);
  }

  async #plain(method, path, { body, member, isRepeatable, idempotencyKey, signal }) {
    const headers = {
      ...(body && { "Content-Type": "application/json" }),
      ...(idempotencyKey && { "Idempotency-Key": idempotencyKey }),
    };
    const init = { method, headers, body: body && JSON.stringify(body) };
    const hasContent = method !== "DELETE";
    return this.#call(path, init, plainReader(member), { idempotencyKey, signal, isRepeatable, hasContent });
  }

  #call(path, init, read, { idempotencyKey, signal, isRepeatable = true, hasContent = true }) {
    const headers = {
      Accept: "application/json",
      Authorization: this.#authorization,
      "User-Agent": `postroad-javascript/${VERSION}`,
      ...init.headers,
    };
    const request = { fetch: this.#fetch, url: this.#base + path, init: { ...init, headers }, signal };
    const attempt = async (timeout) => {
      const { answer, failure } = await exchange(request, timeout);
      return failure ? { failure } : readAnswer(answer, read, { hasContent });
    };
    return withRetries(attempt, this.#limits, { idempotencyKey, signal, isRepeatable });
  }
}

export { Postroad };
