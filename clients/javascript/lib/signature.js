// The header `Service-Signature`, without the secret: what a request claims, and whether the time of it is now.

import { clock } from "./clock.js";

/**
 * The `time` as it was sent, and the `signatures` as bytes. There are none when the header is not well formed,
 * or its time is more than `tolerance` seconds from `now`.
 */
export function readSignatures(header, tolerance, now = Math.floor(clock.now() / 1000)) {
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

/** Whether a body is as it came. Body parsers leave other things behind, and a stranger chooses which. */
export function isRaw(body) {
  return typeof body === "string" || isBytes(body);
}

/** Whether it is a Uint8Array, also one of another realm. */
export function isBytes(value) {
  return Object.prototype.toString.call(value) === "[object Uint8Array]";
}

function fromHex(text) {
  return Uint8Array.from({ length: text.length / 2 }, (_, index) => parseInt(text.slice(2 * index, 2 * index + 2), 16));
}
