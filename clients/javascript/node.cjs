// Made of node.js and lib by build.js.
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

// node.js
var node_exports = {};
__export(node_exports, {
  attachmentFromFile: () => attachmentFromFile,
  nodemailerTransport: () => nodemailerTransport,
  verify: () => verify2,
  webhookMiddleware: () => webhookMiddleware
});
module.exports = __toCommonJS(node_exports);
var import_node_crypto2 = require("node:crypto");
var import_promises = require("node:fs/promises");
var import_node_path = require("node:path");
var import_node_url = require("node:url");
var import_index = require("./index.cjs");

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
var SignatureVerificationError = class extends PostroadError {
  get name() {
    return "SignatureVerificationError";
  }
};

// lib/platform.node.js
var import_node_crypto = require("node:crypto");
var crypto = import_node_crypto.webcrypto;

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

// lib/middleware.js
var MOST_BYTES = 1024 * 1024;
function webhookMiddleware(secret) {
  return async (request, response, next) => {
    try {
      const body = Buffer.isBuffer(request.body) ? request.body : await readAll(request);
      request.event = await parseEvent(body, request.headers["service-signature"], secret);
    } catch (error) {
      if (!(error instanceof SignatureVerificationError || error instanceof TypeError)) return next(error);
      response.statusCode = 400;
      return response.end("the webhook could not be verified");
    }
    return next();
  };
}
async function readAll(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new TypeError("the body is larger than an event can be");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
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

// lib/version.js
var VERSION = "0.1.0";

// lib/nodemailer.js
var MORE = ["template", "variables", "tags", "metadata", "sendAt", "expiresIn"];
function nodemailerTransport(client) {
  return {
    name: "postroad",
    version: VERSION,
    send(mail, callback) {
      mail.normalize((error, data) => {
        if (error) callback(error);
        else send(client, data).then((info) => callback(null, info), callback);
      });
    },
    verify(callback) {
      const verified = verify(client);
      if (!callback) return verified;
      verified.then((answer) => callback(null, answer), callback);
    }
  };
}
async function verify(client) {
  try {
    await client.send({});
  } catch (error) {
    if (error.code !== "invalid_request") throw error;
  }
  return true;
}
async function send(client, data) {
  const replyTo = addresses(data.replyTo);
  if (data.alternatives?.length || data.icalEvent || data.raw) {
    throw new TypeError("Postroad sends text, html and attachments; alternatives, icalEvent and raw are not supported");
  }
  const email = {
    from: addresses(data.from)[0],
    to: addresses(data.to),
    cc: list2(addresses(data.cc)),
    bcc: list2(addresses(data.bcc)),
    replyTo: replyTo.length > 1 ? replyTo : replyTo[0],
    subject: data.subject,
    text: data.text,
    html: data.html,
    headers: Object.keys(data.normalizedHeaders ?? {}).length ? data.normalizedHeaders : void 0,
    attachments: list2((data.attachments ?? []).map(toAttachment)),
    ...Object.fromEntries(MORE.map((name) => [name, data[name]]))
  };
  const receipt = await client.send(email, { idempotencyKey: data.idempotencyKey });
  const accepted = [...receipt.to, ...receipt.cc, ...receipt.bcc];
  return { messageId: receipt.id, envelope: data.envelope, accepted, rejected: [], response: receipt.status, receipt };
}
function addresses(given) {
  return [given ?? []].flat().map((each) => {
    if (typeof each === "string" || !each.name) return each.address ?? each;
    return `"${each.name.replace(/["\\]/g, "\\$&")}" <${each.address}>`;
  });
}
function list2(items) {
  return items.length ? items : void 0;
}
function toAttachment({ filename, content = "", encoding = "utf8", contentType, cid }) {
  const bytes = typeof content === "string" ? Buffer.from(content, encoding) : content;
  return new Attachment({ filename: filename || cid || "attachment", content: bytes, contentType, contentId: cid });
}

// node.js
async function attachmentFromFile(path, members = {}) {
  onlyKnown(members, ["filename", "contentType", "contentId"], "attachment");
  const filename = members.filename ?? (0, import_node_path.basename)(path instanceof URL ? (0, import_node_url.fileURLToPath)(path) : path);
  return new import_index.Attachment({ ...members, filename, content: await (0, import_promises.readFile)(path) });
}
function verify2(rawBody, header, secret, tolerance = 300, now = void 0) {
  if (typeof secret !== "string") throw new TypeError("secret must be a string");
  const { time: time2, signatures } = readSignatures(header, tolerance, now);
  if (!isRaw(rawBody) || secret === "" || signatures.length === 0) return false;
  const expected = (0, import_node_crypto2.createHmac)("sha256", secret).update(`${time2}.`).update(rawBody).digest();
  return signatures.some((signature) => (0, import_node_crypto2.timingSafeEqual)(expected, signature));
}
// Annotate the CommonJS export names for ESM import in node:
0 && (module.exports = {
  attachmentFromFile,
  nodemailerTransport,
  verify,
  webhookMiddleware
});
