// What runtimes have in their own ways; package.json gives Node.js the other file. Here: only what all of them share.

export const crypto = globalThis.crypto;

// As many as may be arguments of one call.
const PART = 0x8000;

export function toBase64(bytes) {
  const parts = [];
  for (let start = 0; start < bytes.length; start += PART) {
    parts.push(String.fromCharCode(...bytes.subarray(start, start + PART)));
  }
  return btoa(parts.join(""));
}

/** Only Node.js counts the listeners of a signal. */
export function allowManyListeners() {}
