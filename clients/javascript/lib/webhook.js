"use strict";
// Whether a webhook may be trusted.

const { createHmac, timingSafeEqual } = require("node:crypto");
const { isUint8Array } = require("node:util/types");
const { clock } = require("./clock.js");

function verify(rawBody, header, secret, tolerance = 300, now = Math.floor(clock.now() / 1000)) {
  if (typeof secret !== "string") throw new TypeError("secret must be a string");
  // Body parsers leave other things behind for a body of another type, and a stranger chooses the type.
  const isRaw = typeof rawBody === "string" || isUint8Array(rawBody);
  if (!isRaw || typeof header !== "string" || secret === "") return false;

  const times = [];
  const signatures = [];
  for (const part of header.split(",")) {
    const [name, ...rest] = part.split("=");
    if (name === "t") times.push(rest.join("="));
    if (name === "v1") signatures.push(rest.join("="));
  }
  if (times.length !== 1 || !/^[0-9]{1,15}$/.test(times[0])) return false;
  if (!(Math.abs(now - Number(times[0])) <= tolerance)) return false;
  const expected = createHmac("sha256", secret).update(`${times[0]}.`).update(rawBody).digest();
  return signatures.some(
    (value) => /^[0-9a-f]{64}$/.test(value) && timingSafeEqual(expected, Buffer.from(value, "hex")),
  );
}

module.exports = { verify };
