"use strict";
// Attachments, from bytes and from files.

const assert = require("node:assert/strict");
const { mkdtemp, rm, writeFile } = require("node:fs/promises");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { test } = require("node:test");
const { pathToFileURL } = require("node:url");
const { Attachment } = require("../index.js");
const { emailToJson } = require("../lib/email.js");

async function temporaryFile(t, name, bytes) {
  const folder = await mkdtemp(join(tmpdir(), "postroad-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, name), bytes);
  return join(folder, name);
}

test("a file is read, and has its own name", async (t) => {
  const path = await temporaryFile(t, "Rechnung 1 ü.pdf", Buffer.of(0, 1, 255));
  for (const attachment of [await Attachment.fromFile(path), await Attachment.fromFile(pathToFileURL(path))]) {
    assert.ok(attachment instanceof Attachment);
    assert.equal(attachment.filename, "Rechnung 1 ü.pdf");
    assert.deepEqual([...attachment.content], [0, 1, 255]);
    assert.equal(attachment.contentType, null);
  }
});

test("a file may get another name, a type and an id", async (t) => {
  const path = await temporaryFile(t, "a.bin", "");
  const given = { filename: "logo.png", contentType: "image/png", contentId: "logo" };
  const { content, ...members } = await Attachment.fromFile(path, given);
  assert.equal(content.length, 0);
  assert.deepEqual(members, given);
});

test("a file that is not there is an error of the file system", async () => {
  await assert.rejects(Attachment.fromFile(join(tmpdir(), "postroad", "no", "such")), { code: "ENOENT" });
});

test("bytes are sent as base64 without line breaks, and only the bytes of the view", () => {
  const memory = new Uint8Array(1000).fill(7);
  const content = memory.subarray(100, 400);
  const { attachments } = JSON.parse(emailToJson({ attachments: [new Attachment({ filename: "a", content })] }));
  assert.deepEqual(attachments, [{ filename: "a", content: Buffer.alloc(300, 7).toString("base64") }]);
});
