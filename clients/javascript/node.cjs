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
  verify: () => verify
});
module.exports = __toCommonJS(node_exports);
var import_node_crypto = require("node:crypto");
var import_promises = require("node:fs/promises");
var import_node_path = require("node:path");
var import_node_url = require("node:url");
var import_index = require("./index.cjs");

// lib/arguments.js
function onlyKnown(object, known, what) {
  if (typeof object !== "object" || object === null) throw new TypeError(`${what} must be an object`);
  for (const name of Object.keys(object)) {
    if (!known.includes(name)) throw new TypeError(`${what}: there is no "${name}"; known are ${known.join(", ")}`);
  }
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
  const nothing = { time: "", signatures: [] };
  if (typeof header !== "string") return nothing;
  const times = [];
  const signatures = [];
  for (const part of header.split(",")) {
    const [name, ...rest] = part.split("=");
    if (name === "t") times.push(rest.join("="));
    if (name === "v1") signatures.push(rest.join("="));
  }
  if (times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return nothing;
  if (!(Math.abs(now - Number(times[0])) <= tolerance)) return nothing;
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

// node.js
async function attachmentFromFile(path, members = {}) {
  onlyKnown(members, ["filename", "contentType", "contentId"], "attachment");
  const filename = members.filename ?? (0, import_node_path.basename)(path instanceof URL ? (0, import_node_url.fileURLToPath)(path) : path);
  return new import_index.Attachment({ ...members, filename, content: await (0, import_promises.readFile)(path) });
}
function verify(rawBody, header, secret, tolerance = 300, now = void 0) {
  if (typeof secret !== "string") throw new TypeError("secret must be a string");
  const { time, signatures } = readSignatures(header, tolerance, now);
  if (!isRaw(rawBody) || secret === "" || signatures.length === 0) return false;
  const expected = (0, import_node_crypto.createHmac)("sha256", secret).update(`${time}.`).update(rawBody).digest();
  return signatures.some((signature) => (0, import_node_crypto.timingSafeEqual)(expected, signature));
}
// Annotate the CommonJS export names for ESM import in node:
0 && (module.exports = {
  attachmentFromFile,
  verify
});
