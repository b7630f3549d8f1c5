// What needs Node.js: files, and an HMAC that does not make its caller wait.

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { Attachment } from "./index.js";
import { onlyKnown } from "./lib/arguments.js";
import { isRaw, readSignatures } from "./lib/signature.js";

export { webhookMiddleware } from "./lib/middleware.js";
export { nodemailerTransport } from "./lib/nodemailer.js";

/** Reads a file now; it is named as on disk unless `members` says otherwise. */
export async function attachmentFromFile(path, members = {}) {
  onlyKnown(members, ["filename", "contentType", "contentId"], "attachment");
  const filename = members.filename ?? basename(path instanceof URL ? fileURLToPath(path) : path);
  return new Attachment({ ...members, filename, content: await readFile(path) });
}

/** Whether a webhook was signed with the secret, at most `tolerance` seconds from now. */
export function verify(rawBody, header, secret, tolerance = 300, now = undefined) {
  if (typeof secret !== "string") throw new TypeError("secret must be a string");
  const { time, signatures } = readSignatures(header, tolerance, now);
  if (!isRaw(rawBody) || secret === "" || signatures.length === 0) return false;
  const expected = createHmac("sha256", secret).update(`${time}.`).update(rawBody).digest();
  return signatures.some((signature) => timingSafeEqual(expected, signature));
}
