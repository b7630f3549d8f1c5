// The event of a webhook that may be trusted.

import { crypto } from "#platform";
import { SignatureVerificationError } from "./error.js";
import { Mismatch } from "./members.js";
import { readEvent } from "./records.js";
import { isRaw, readSignatures } from "./signature.js";

const HMAC = { name: "HMAC", hash: "SHA-256" };

/**
 * Gives the event of a request that was signed with the secret, or with one of several, at most `tolerance` seconds
 * from now. Rejects with a SignatureVerificationError otherwise, and with a TypeError when what was signed is no event.
 */
export async function parseEvent(rawBody, header, secret, tolerance = 300, now = undefined) {
  const secrets = Array.isArray(secret) ? secret : [secret];
  if (!secrets.every((each) => typeof each === "string")) throw new TypeError("secret must be a string, or several");
  const { time, signatures } = readSignatures(header, tolerance, now);
  const bytes = isRaw(rawBody) ? encode(rawBody) : null;
  const known = bytes && signatures.length > 0 ? secrets.filter((each) => each !== "") : [];
  for (const each of known) {
    if (await isSigned(join(encode(`${time}.`), bytes), signatures, each)) return read(bytes);
  }
  throw new SignatureVerificationError("the signature is of another secret or body, or too old", {
    code: "invalid_signature",
  });
}

async function isSigned(message, signatures, secret) {
  const key = await crypto.subtle.importKey("raw", encode(secret), HMAC, false, ["verify"]);
  // In constant time.
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
