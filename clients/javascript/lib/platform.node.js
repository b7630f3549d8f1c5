// The same as platform.js for Node.js, of which version 18 has no global `crypto`.

import { webcrypto } from "node:crypto";
import { setMaxListeners } from "node:events";

export const crypto = webcrypto;

export function toBase64(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** One signal for a whole application has many calls, which is no leak. */
export function allowManyListeners(signal) {
  setMaxListeners(0, signal);
}
