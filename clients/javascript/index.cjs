// Made of index.js and lib by build.js.
var __defProp = Object.defineProperty;
var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
var __getOwnPropNames = Object.getOwnPropertyNames;
var __hasOwnProp = Object.prototype.hasOwnProperty;
var __export = (target, all) => {
  for (var name in all)
    __defProp(target, name, { get: all[name], enumerable: true });
};
var __copyProps = (to, from, except, desc) => {
  if (from && typeof from === "object" || typeof from === "function") {
    for (let key of __getOwnPropNames(from))
      if (!__hasOwnProp.call(to, key) && key !== except)
        __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
  }
  return to;
};
var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);

// index.js
var index_exports = {};
__export(index_exports, {
  Attachment: () => Attachment,
  AuthenticationError: () => AuthenticationError,
  ConnectionFailedError: () => ConnectionFailedError,
  IdempotencyError: () => IdempotencyError,
  InsufficientCreditsError: () => InsufficientCreditsError,
  InvalidRequestError: () => InvalidRequestError,
  NotFoundError: () => NotFoundError,
  PermissionDeniedError: () => PermissionDeniedError,
  Postroad: () => Postroad,
  PostroadError: () => PostroadError,
  RateLimitError: () => RateLimitError,
  ServerError: () => ServerError,
  SignatureVerificationError: () => SignatureVerificationError,
  TimedOutError: () => TimedOutError,
  UnexpectedResponseError: () => UnexpectedResponseError,
  parseEvent: () => parseEvent
});
module.exports = __toCommonJS(index_exports);

// lib/arguments.js
function onlyKnown(object2, known, what) {
  if (typeof object2 !== "object" || object2 === null) throw new TypeError(`${what} must be an object`);
  for (const name of Object.keys(object2)) {
    if (!known.includes(name)) throw new TypeError(`${what}: there is no "${name}"; known are ${known.join(", ")}`);
  }
}
function string(value, what) {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string`);
  return value;
}
function headerValue(value, what) {
  if (!/^[\x20-\x7e]+$/.test(string(value, what))) throw new TypeError(`${what} must be printable ASCII, and not empty`);
  return value;
}
function messageId(value) {
  if (!/^[A-Za-z0-9_-]+$/.test(string(value, "id"))) throw new TypeError("id must be of letters, digits, _ and -");
  return value;
}

// lib/clock.js
var clock = {
  /** Milliseconds since 1970, as the wall clock shows them. */
  now: () => Date.now(),
  /** Milliseconds since some moment; never goes back. */
  elapsed: () => performance.now(),
  /** A number from 0 up to 1. */
  random: () => Math.random(),
  /** Waits so many milliseconds; an abort of `signal` ends it with the signal's reason. */
  sleep: (milliseconds, signal) => new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", onAbort, { once: true });
  })
};

// lib/signature.js
function readSignatures(header, tolerance, now = Math.floor(clock.now() / 1e3)) {
  const nothing2 = { time: "", signatures: [] };
  if (typeof header !== "string") return nothing2;
  const times = [];
  const signatures = [];
  for (const part of header.split(",")) {
    const [name, ...rest] = part.split("=");
    if (name === "t") times.push(rest.join("="));
    if (name === "v1") signatures.push(rest.join("="));
  }
  if (times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return nothing2;
  if (!(Math.abs(now - Number(times[0])) <= tolerance)) return nothing2;
  return { time: times[0], signatures: signatures.filter((text) => /^[0-9a-f]{64}$/.test(text)).map(fromHex) };
}
function isRaw(body) {
  return typeof body === "string" || isBytes(body);
}
function isBytes(value) {
  return Object.prototype.toString.call(value) === "[object Uint8Array]";
}
function fromHex(text) {
  return Uint8Array.from({ length: text.length / 2 }, (_, index) => parseInt(text.slice(2 * index, 2 * index + 2), 16));
}

// lib/attachment.js
var KNOWN = ["filename", "content", "contentType", "contentId"];
var Attachment = class {
  constructor(members) {
    onlyKnown(members, KNOWN, "attachment");
    this.filename = string(members.filename, "an attachment's filename");
    if (!isBytes(members.content)) {
      throw new TypeError("an attachment's content must be a Buffer or another Uint8Array");
    }
    this.content = members.content;
    this.contentType = members.contentType ?? null;
    this.contentId = members.contentId ?? null;
  }
};

// lib/platform.node.js
var import_node_crypto = require("node:crypto");
var import_node_events = require("node:events");
var crypto = import_node_crypto.webcrypto;
function toBase64(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
function allowManyListeners(signal) {
  (0, import_node_events.setMaxListeners)(0, signal);
}

// lib/members.js
var RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
var Mismatch = class extends Error {
};
function member(name, empty, isRight, convert = (value) => value) {
  return (object2) => {
    const value = object2[name] ?? null;
    if (value === null) return empty();
    if (!isRight(value)) throw new Mismatch(`the type of \`${name}\` is wrong`);
    return convert(value);
  };
}
var isString = (value) => typeof value === "string";
var isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
var isTime = (value) => isString(value) && RFC_3339.test(value) && !Number.isNaN(Date.parse(value));
var nothing = () => null;
var string2 = (name) => member(name, nothing, isString);
var integer = (name) => member(name, nothing, Number.isInteger);
var time = (name) => member(name, nothing, isTime, (value) => new Date(value));
var boolean = (name) => member(name, () => false, (value) => typeof value === "boolean");
var strings = (name) => member(name, () => [], (value) => Array.isArray(value) && value.every(isString));
var stringOrStrings = (name) => member(name, nothing, (value) => isString(value) || Array.isArray(value) && value.every(isString));
var stringsByName = (name) => member(name, () => ({}), (value) => isObject(value) && Object.values(value).every(isString));
var list = (name, fields) => member(name, () => [], Array.isArray, (values) => values.map(record(fields)));
var object = (name, fields) => member(name, () => record(fields)({}), isObject, (value) => record(fields)(value));
var plain = (name) => member(name, nothing, isObject);
var required = (name) => (object2) => {
  if (!isString(object2[name]) || object2[name] === "") throw new Mismatch(`there is no \`${name}\``);
  return object2[name];
};
function record(fields) {
  return (object2) => {
    if (!isObject(object2)) throw new Mismatch("it is not an object");
    return Object.fromEntries(Object.entries(fields).map(([name, read2]) => [name, read2(object2)]));
  };
}

// lib/retry-after.js
function readRetryAfter(value) {
  if (value === null) return null;
  if (/^[0-9]+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  if (!/^[A-Z][a-z]+, .+ GMT$/.test(value)) return null;
  const seconds2 = (Date.parse(value) - clock.now()) / 1e3;
  return seconds2 > 0 ? seconds2 : null;
}

// lib/answer.js
function readAnswer(answer, read2, { hasContent = true } = {}) {
  const { status, headers } = answer;
  const body = parse(answer);
  const facts = {
    status,
    requestId: typeof body?.request_id === "string" ? body.request_id : headers.get("x-request-id"),
    retryAfter: readRetryAfter(headers.get("retry-after"))
  };
  const unexpected = (text) => ({ failure: { ...facts, code: "unexpected_response", text } });
  if (status === 204 && !hasContent) return { value: null };
  if (answer.redirected) return unexpected("the given fetch followed a redirect, and must not");
  if (answer.isTooLarge) return unexpected("the response is larger than 4 MiB");
  if (status >= 300 && status < 400) {
    const target = quote(headers.get("location") ?? "");
    return unexpected(`a redirect${target && ` to ${target}`}; redirects are not followed`);
  }
  if (status >= 400 && typeof body?.code === "string" && body.code !== "") {
    const text = typeof body.error === "string" ? body.error : "the server gives no reason";
    return { failure: { ...facts, code: body.code, text } };
  }
  if (status < 200 || status >= 300 || body === void 0) {
    return unexpected(`not a response of Postroad: ${quote(answer.text) || "it is empty"}`);
  }
  try {
    return { value: read2(body) };
  } catch (error) {
    if (error instanceof Mismatch) return unexpected(`not a response of Postroad: ${error.message}`);
    throw error;
  }
}
function parse({ text, isTooLarge }) {
  try {
    return isTooLarge ? void 0 : JSON.parse(text);
  } catch {
    return void 0;
  }
}
function quote(text) {
  const line = text.replace(/[\s\p{Cc}]+/gu, " ").trim();
  return /^.{0,200}/su.exec(line)[0];
}

// lib/email.js
var NAMES = {
  from: "from",
  to: "to",
  cc: "cc",
  bcc: "bcc",
  replyTo: "reply_to",
  subject: "subject",
  text: "text",
  html: "html",
  template: "template",
  variables: "variables",
  headers: "headers",
  tags: "tags",
  attachments: "attachments",
  sendAt: "send_at",
  expiresIn: "expires_in",
  metadata: "metadata"
};
function emailToJson(email) {
  return JSON.stringify(emailMembers(email));
}
function emailMembers(email) {
  onlyKnown(email, Object.keys(NAMES), "email");
  const body = {};
  for (const [name, sent] of Object.entries(NAMES)) {
    const value = email[name] ?? void 0;
    body[sent] = name === "attachments" ? value && attachmentsToJson(value) : value;
  }
  return body;
}
function attachmentsToJson(attachments) {
  if (!Array.isArray(attachments)) throw new TypeError("attachments must be an array");
  return attachments.map((given) => {
    const { filename, content, contentType, contentId } = given instanceof Attachment ? given : new Attachment(given);
    return {
      filename,
      content: toBase64(content),
      content_type: contentType ?? void 0,
      content_id: contentId ?? void 0
    };
  });
}

// lib/exchange.js
var MOST_BYTES = 4 * 1024 * 1024;
var NOT_REACHED = {
  EAI_AGAIN: "its name cannot be looked up",
  ECONNREFUSED: "connection refused",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ENOTFOUND: "there is no host of this name"
};
var TIMEOUTS = ["ETIMEDOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT"];
var UNREADABLE = /^(HPE_|HTTPParserError$|UND_ERR_HEADERS_OVERFLOW$|Z_)/;
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
function noCache() {
  return "cache" in globalThis.Request.prototype ? { cache: "no-store" } : {};
}
async function readWhole(response) {
  const { status, headers, redirected } = response;
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (; ; ) {
    const { done, value } = await reader?.read() ?? { done: true };
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
  const reason = error?.cause ?? error;
  if (TIMEOUTS.includes(reason?.code)) return { code: "timed_out", text: `${host} did not respond in time` };
  if (UNREADABLE.test(reason?.code ?? reason?.name)) {
    return { code: "unexpected_response", text: `the response of ${host} cannot be read: ${reason.message}` };
  }
  const notReached = NOT_REACHED[reason?.code];
  return {
    code: "connection_failed",
    text: notReached ? `could not connect to ${host}: ${notReached}` : `the connection to ${host} failed: ${reason?.message || reason?.code || error?.message}`
  };
}
function seconds(milliseconds) {
  return Number((milliseconds / 1e3).toPrecision(2));
}

// lib/options.js
var KNOWN2 = ["baseUrl", "token", "username", "password", "timeout", "maxElapsed", "fetch"];
var LONGEST_TIMER = 2 ** 31 - 1;
function readOptions(options) {
  onlyKnown(options, KNOWN2, "options");
  const { timeout = 3e4, maxElapsed = 6e4 } = options;
  if (timeout === 0) throw new TypeError("timeout must be more than 0 milliseconds");
  return {
    base: readBaseUrl(options.baseUrl),
    authorization: readCredential(options),
    limits: { timeout: nonNegative(timeout, "timeout"), maxElapsed: nonNegative(maxElapsed, "maxElapsed") },
    fetch: readFetch(options.fetch)
  };
}
function readBaseUrl(value) {
  const text = value instanceof URL ? value.href : string(value, "baseUrl");
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
  if (string(username, "username").includes(":")) throw new TypeError("username must not have a colon in it");
  return `Basic ${toBase64(new TextEncoder().encode(`${username}:${string(password, "password")}`))}`;
}
function isGiven(value) {
  return value !== void 0 && value !== null && value !== "";
}
function nonNegative(value, what) {
  if (typeof value !== "number" || !(value >= 0 && value <= LONGEST_TIMER)) {
    throw new TypeError(`${what} must be a number of milliseconds, not negative and at most ${LONGEST_TIMER}`);
  }
  return value;
}
function readFetch(own) {
  if (own === void 0) return (url, init) => globalThis.fetch(url, init);
  if (typeof own !== "function") throw new TypeError("fetch must be a function");
  return own;
}

// lib/records.js
var readReceipt = record({
  id: required("id"),
  status: string2("status"),
  source: string2("source"),
  from: string2("from"),
  to: strings("to"),
  cc: strings("cc"),
  bcc: strings("bcc"),
  replyTo: stringOrStrings("reply_to"),
  subject: string2("subject"),
  billingStatus: string2("billing_status"),
  recipientCount: integer("recipient_count"),
  creditsReserved: integer("credits_reserved"),
  headers: stringsByName("headers"),
  tags: strings("tags"),
  attachments: list("attachments", {
    filename: string2("filename"),
    contentType: string2("content_type"),
    size: integer("size"),
    contentId: string2("content_id")
  }),
  requestId: string2("request_id"),
  sendAt: time("send_at"),
  expiresAt: time("expires_at"),
  metadata: stringsByName("metadata")
});
var readMessage = record({
  id: required("id"),
  status: required("status"),
  source: string2("source"),
  from: string2("from"),
  subject: string2("subject"),
  billingStatus: string2("billing_status"),
  recipientCount: integer("recipient_count"),
  creditsReserved: integer("credits_reserved"),
  createdAt: time("created_at"),
  recipients: list("recipients", {
    id: string2("id"),
    email: string2("email"),
    status: string2("status"),
    billingStatus: string2("billing_status"),
    attemptCount: integer("attempt_count"),
    lastSmtpCode: integer("last_smtp_code"),
    lastSmtpResponse: string2("last_smtp_response"),
    deliveredAt: time("delivered_at"),
    bouncedAt: time("bounced_at"),
    queue: plain("queue")
  }),
  requestId: string2("request_id"),
  sendAt: time("send_at"),
  expiresAt: time("expires_at"),
  metadata: stringsByName("metadata")
});
var readEvent = record({
  id: required("id"),
  type: required("type"),
  createdAt: time("created_at"),
  data: object("data", {
    emailId: string2("email_id"),
    recipientId: string2("recipient_id"),
    to: string2("to"),
    from: string2("from"),
    subject: string2("subject"),
    smtpCode: integer("smtp_code"),
    smtpResponse: string2("smtp_response"),
    test: boolean("test")
  })
});
function plainReader(member2) {
  return (object2) => {
    if (typeof object2 !== "object" || object2 === null || Array.isArray(object2)) throw new Mismatch("it is not an object");
    if (member2 !== void 0 && !(member2 in object2)) throw new Mismatch(`there is no \`${member2}\``);
    return member2 === void 0 ? object2 : object2[member2];
  };
}

// lib/resources.js
var RESOURCES = {
  messages: {
    list: ["GET", "/v1/messages", { items: "messages" }],
    get: ["GET", "/v1/messages/{}"],
    retry: ["POST", "/v1/messages/{}/retry", { hasBody: true }]
  },
  templates: {
    list: ["GET", "/v1/templates", { items: "templates" }],
    get: ["GET", "/v1/templates/{}", { member: "template" }],
    save: ["PUT", "/v1/templates/{}", { hasBody: true, member: "template" }],
    delete: ["DELETE", "/v1/templates/{}"],
    preview: ["POST", "/v1/templates/{}/preview", { hasBody: true, isRepeatable: true }]
  },
  suppressions: {
    list: ["GET", "/v1/suppressions", { items: "suppressions" }],
    create: ["POST", "/v1/suppressions", { hasBody: true, member: "suppression" }],
    get: ["GET", "/v1/suppressions/{}", { member: "suppression" }],
    delete: ["DELETE", "/v1/suppressions/{}"]
  },
  domains: {
    list: ["GET", "/v1/domains", { items: "domains" }],
    create: ["POST", "/v1/domains", { hasBody: true, member: "domain" }],
    get: ["GET", "/v1/domains/{}", { member: "domain" }],
    delete: ["DELETE", "/v1/domains/{}"],
    check: ["POST", "/v1/domains/{}/check", { member: "domain", isRepeatable: true }],
    rotateKey: ["POST", "/v1/domains/{}/rotate-key", { member: "domain" }]
  },
  webhooks: {
    list: ["GET", "/v1/webhooks", { items: "webhooks" }],
    create: ["POST", "/v1/webhooks", { hasBody: true }],
    get: ["GET", "/v1/webhooks/{}", { member: "webhook" }],
    update: ["PATCH", "/v1/webhooks/{}", { hasBody: true, member: "webhook" }],
    delete: ["DELETE", "/v1/webhooks/{}"],
    rotateSecret: ["POST", "/v1/webhooks/{}/rotate-secret", { hasBody: true, member: "secret" }],
    ping: ["POST", "/v1/webhooks/{}/ping", { member: "delivery" }],
    deliveries: ["GET", "/v1/webhooks/{}/deliveries", { items: "deliveries" }],
    getDelivery: ["GET", "/v1/webhooks/{}/deliveries/{}", { member: "delivery" }],
    replay: ["POST", "/v1/webhooks/{}/deliveries/{}/replay", { member: "delivery" }],
    replayFailed: ["POST", "/v1/webhooks/{}/deliveries/replay", { hasBody: true }]
  },
  apiKeys: {
    list: ["GET", "/v1/api-keys", { items: "api_keys" }],
    create: ["POST", "/v1/api-keys", { hasBody: true }],
    update: ["PATCH", "/v1/api-keys/{}", { hasBody: true, member: "api_key" }],
    revoke: ["DELETE", "/v1/api-keys/{}"]
  }
};
var NEXT_PAGES = { next_cursor: "cursor", next_before: "before" };
function makeResources(call) {
  const made = Object.entries(RESOURCES).map(([name, operations]) => {
    const functions = Object.entries(operations).map(([verb, operation]) => [verb, makeFunction(call, ...operation)]);
    return [name, Object.freeze(Object.fromEntries(functions))];
  });
  return Object.fromEntries(made);
}
function makeFunction(call, method, path, { items, hasBody = false, member: member2, isRepeatable = method !== "POST" } = {}) {
  const count = path.split("{}").length - 1;
  return (...given) => {
    const filled = fill(path, given.slice(0, count));
    const parameters = given[count] ?? {};
    if (items) return pages(call, filled, items, parameters);
    return call(method, filled, { body: hasBody ? parameters : void 0, member: member2, isRepeatable });
  };
}
async function* pages(call, path, items, filters) {
  for (let following = {}; following; ) {
    const page = await call("GET", path + query({ ...filters, ...following }), { isRepeatable: true });
    yield* page[items] ?? [];
    const next = Object.keys(NEXT_PAGES).find((name) => page[name] != null);
    following = next && { [NEXT_PAGES[next]]: page[next] };
  }
}
function fill(path, names) {
  let used = 0;
  return path.replace(/\{\}/g, () => {
    const name = names[used++];
    if (typeof name !== "string" || ["", ".", ".."].includes(name)) {
      throw new TypeError('a name in a path is a string, not empty, and not "." or ".."');
    }
    return encodeURIComponent(name);
  });
}
function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value != null);
  const written = given.map(([name, value]) => {
    return `${name}=${encodeURIComponent(value instanceof Date ? value.toISOString() : value)}`;
  });
  return written.length ? `?${written.join("&")}` : "";
}

// lib/error.js
var RETRYABLE_STATUSES = [408, 429, 500, 502, 503, 504];
var RETRYABLE_CODES = ["idempotency_in_progress", "connection_failed", "timed_out"];
var PostroadError = class extends Error {
  constructor(text, { code, status, requestId, retryAfter, idempotencyKey, attempts = 1, cause }) {
    const remarks = [requestId, attempts > 1 && `${attempts} attempts`].filter(Boolean).join(", ");
    super(`${status ? `${status} ` : ""}${code}: ${text}${remarks && ` (${remarks})`}`, cause && { cause });
    this.code = code;
    this.status = status ?? null;
    this.requestId = requestId ?? null;
    this.retryAfter = retryAfter ?? null;
    this.idempotencyKey = idempotencyKey ?? null;
  }
  // Not a field: it says nothing about one error, and should not be printed with each.
  // Not the name of the class either: a minifier changes that.
  get name() {
    return "PostroadError";
  }
  get isRetryable() {
    return RETRYABLE_STATUSES.includes(this.status) || RETRYABLE_CODES.includes(this.code);
  }
  get isInsufficientCredits() {
    return this.code === "insufficient_credits";
  }
  get isIdempotencyConflict() {
    return this.code === "idempotency_conflict";
  }
};
var InvalidRequestError = class extends PostroadError {
  get name() {
    return "InvalidRequestError";
  }
};
var AuthenticationError = class extends PostroadError {
  get name() {
    return "AuthenticationError";
  }
};
var InsufficientCreditsError = class extends PostroadError {
  get name() {
    return "InsufficientCreditsError";
  }
};
var PermissionDeniedError = class extends PostroadError {
  get name() {
    return "PermissionDeniedError";
  }
};
var NotFoundError = class extends PostroadError {
  get name() {
    return "NotFoundError";
  }
};
var IdempotencyError = class extends PostroadError {
  get name() {
    return "IdempotencyError";
  }
};
var RateLimitError = class extends PostroadError {
  get name() {
    return "RateLimitError";
  }
};
var ServerError = class extends PostroadError {
  get name() {
    return "ServerError";
  }
};
var ConnectionFailedError = class extends PostroadError {
  get name() {
    return "ConnectionFailedError";
  }
};
var TimedOutError = class extends PostroadError {
  constructor(text, { lastMessage, ...details }) {
    super(text, details);
    this.lastMessage = lastMessage ?? null;
  }
  get name() {
    return "TimedOutError";
  }
};
var UnexpectedResponseError = class extends PostroadError {
  get name() {
    return "UnexpectedResponseError";
  }
};
var SignatureVerificationError = class extends PostroadError {
  get name() {
    return "SignatureVerificationError";
  }
};
var BY_CODE = { connection_failed: ConnectionFailedError, timed_out: TimedOutError };
var BY_STATUS = {
  401: AuthenticationError,
  402: InsufficientCreditsError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: IdempotencyError,
  429: RateLimitError
};
function errorOf(text, details) {
  return new (kindOf(details))(text, details);
}
function kindOf({ status, code }) {
  if (code === "insufficient_credits") return InsufficientCreditsError;
  if (!status) return BY_CODE[code] ?? UnexpectedResponseError;
  if (status < 400) return UnexpectedResponseError;
  return BY_STATUS[status] ?? (status < 500 ? InvalidRequestError : ServerError);
}

// lib/retry.js
var FIRST_BACK_OFF = 500;
var LONGEST_BACK_OFF = 8e3;
var FIRST_POLL = 1e3;
var POLL_GROWTH = 1.5;
var LONGEST_POLL = 1e4;
var FINAL_STATUSES = ["delivered", "bounced", "failed", "canceled", "expired"];
async function withRetries(attempt, { timeout, maxElapsed }, { idempotencyKey, signal, isRepeatable = true }) {
  const deadline = clock.elapsed() + maxElapsed;
  const timeLeft = () => Math.max(1, deadline - clock.elapsed());
  for (let attempts = 1; ; attempts++) {
    const { value, failure } = await attempt(maxElapsed === 0 ? timeout : Math.min(timeout, timeLeft()));
    if (!failure) return value;
    const error = errorOf(failure.text, { ...failure, idempotencyKey, attempts });
    const pause = (error.retryAfter ?? 0) * 1e3 + backOff(attempts);
    const hasDoneNothing = error.status === 429 || error.code === "service_unavailable";
    if (!error.isRetryable || !(isRepeatable || hasDoneNothing) || pause >= deadline - clock.elapsed()) throw error;
    await clock.sleep(pause, signal);
  }
}
function backOff(retry) {
  return Math.min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2 ** (retry - 1)) * (0.5 + clock.random() / 2);
}
async function untilFinal(get, { id, timeout, signal }) {
  const deadline = clock.elapsed() + timeout;
  for (let pause = FIRST_POLL, isLast = false; ; pause = Math.min(LONGEST_POLL, pause * POLL_GROWTH)) {
    const message = await get();
    if (isFinal(message)) return message;
    const timeLeft = deadline - clock.elapsed();
    if (isLast || timeLeft <= 0) {
      throw new TimedOutError(`${id} is not final after ${timeout / 1e3} s`, { code: "timed_out", lastMessage: message });
    }
    isLast = pause >= timeLeft;
    await clock.sleep(Math.min(pause, timeLeft), signal);
  }
}
function isFinal({ recipients }) {
  return recipients.length > 0 && recipients.every(({ status }) => FINAL_STATUSES.includes(status));
}

// lib/version.js
var VERSION = "0.1.0";

// lib/client.js
var Postroad = class {
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
    const { timeout = 3e5, signal } = options;
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
  async #plain(method, path, { body, member: member2, isRepeatable, idempotencyKey, signal }) {
    const headers = {
      ...body && { "Content-Type": "application/json" },
      ...idempotencyKey && { "Idempotency-Key": idempotencyKey }
    };
    const init = { method, headers, body: body && JSON.stringify(body) };
    const hasContent = method !== "DELETE";
    return this.#call(path, init, plainReader(member2), { idempotencyKey, signal, isRepeatable, hasContent });
  }
  #call(path, init, read2, { idempotencyKey, signal, isRepeatable = true, hasContent = true }) {
    const headers = {
      Accept: "application/json",
      Authorization: this.#authorization,
      "User-Agent": `postroad-javascript/${VERSION}`,
      ...init.headers
    };
    const request = { fetch: this.#fetch, url: this.#base + path, init: { ...init, headers }, signal };
    const attempt = async (timeout) => {
      const { answer, failure } = await exchange(request, timeout);
      return failure ? { failure } : readAnswer(answer, read2, { hasContent });
    };
    return withRetries(attempt, this.#limits, { idempotencyKey, signal, isRepeatable });
  }
};

// lib/webhook.js
var HMAC = { name: "HMAC", hash: "SHA-256" };
async function parseEvent(rawBody, header, secret, tolerance = 300, now = void 0) {
  const secrets = Array.isArray(secret) ? secret : [secret];
  if (!secrets.every((each) => typeof each === "string")) throw new TypeError("secret must be a string, or several");
  const { time: time2, signatures } = readSignatures(header, tolerance, now);
  const bytes = isRaw(rawBody) ? encode(rawBody) : null;
  const known = bytes && signatures.length > 0 ? secrets.filter((each) => each !== "") : [];
  for (const each of known) {
    if (await isSigned(join(encode(`${time2}.`), bytes), signatures, each)) return read(bytes);
  }
  throw new SignatureVerificationError("the signature is of another secret or body, or too old", {
    code: "invalid_signature"
  });
}
async function isSigned(message, signatures, secret) {
  const key = await crypto.subtle.importKey("raw", encode(secret), HMAC, false, ["verify"]);
  const matches = await Promise.all(signatures.map((each) => crypto.subtle.verify("HMAC", key, each, message)));
  return matches.includes(true);
}
function read(bytes) {
  try {
    return readEvent(JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)));
  } catch (error) {
    if (error instanceof Mismatch || error instanceof SyntaxError || error instanceof TypeError) {
      throw new TypeError(`the body is no event: ${error.message}`);
    }
    throw error;
  }
}
function encode(value) {
  return typeof value === "string" ? new TextEncoder().encode(value) : value;
}
function join(first, second) {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}
// Annotate the CommonJS export names for ESM import in node:
0 && (module.exports = {
  Attachment,
  AuthenticationError,
  ConnectionFailedError,
  IdempotencyError,
  InsufficientCreditsError,
  InvalidRequestError,
  NotFoundError,
  PermissionDeniedError,
  Postroad,
  PostroadError,
  RateLimitError,
  ServerError,
  SignatureVerificationError,
  TimedOutError,
  UnexpectedResponseError,
  parseEvent
});
