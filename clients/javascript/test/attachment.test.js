// Attachments, from bytes and from files.

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { Attachment } from "../index.js";
import { emailToJson } from "../lib/email.js";
import * as web from "../lib/platform.js";
import { attachmentFromFile } from "../node.js";

async function temporaryFile(t, name, bytes) {
  const folder = await mkdtemp(join(tmpdir(), "postroad-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, name), bytes);
  return join(folder, name);
}

test("a file is read, and has its own name", async (t) => {
  const path = await temporaryFile(t, "Rechnung 1 ü.pdf", Buffer.of(0, 1, 255));
  for (const attachment of [await attachmentFromFile(path), await attachmentFromFile(pathToFileURL(path))]) {
    assert.ok(attachment instanceof Attachment);
    assert.equal(attachment.filename, "Rechnung 1 ü.pdf");
    assert.deepEqual([...attachment.content], [0, 1, 255]);
    assert.equal(attachment.contentType, null);
  }
});

test("a file may get another name, a type and an id", async (t) => {
  const path = await temporaryFile(t, "a.bin", "");
  const given = { filename: "logo.png", contentType: "image/png", contentId: "logo" };
  const { content, ...members } = await attachmentFromFile(path, given);
  assert.equal(content.length, 0);
  assert.deepEqual(members, given);
});

test("a file that is not there is an error of the file system", async () => {
  await assert.rejects(attachmentFromFile(join(tmpdir(), "postroad", "no", "such")), { code: "ENOENT" });
});

test("bytes are sent as base64 without line breaks, and only the bytes of the view", () => {
  const memory = new Uint8Array(1000).fill(7);
  const content = memory.subarray(100, 400);
  const { attachments } = JSON.parse(emailToJson({ attachments: [new Attachment({ filename: "a", content })] }));
  assert.deepEqual(attachments, [{ filename: "a", content: Buffer.alloc(300, 7).toString("base64") }]);
});

test("base64 is the same without Node.js, for more bytes than a call has arguments too", () => {
  for (const size of [0, 1, 2, 3, 0x8000 - 1, 0x8000 + 1, 200_000]) {
    const bytes = Uint8Array.from({ length: size }, (_, index) => (index * 7) % 256);
    assert.equal(web.toBase64(bytes), Buffer.from(bytes).toString("base64"));
  }
});
