"use strict";
// The package as others load it.

const assert = require("node:assert/strict");
const { execFile } = require("node:child_process");
const { readFile } = require("node:fs/promises");
const { join } = require("node:path");
const { test } = require("node:test");
const { promisify } = require("node:util");
const { PACKAGE, makeProject } = require("./support/project.js");
const { FOUND, serve } = require("./support/server.js");

test("import and require give the same things, and nothing else", async () => {
  const imported = await import("postroad");
  const required = require("postroad");
  assert.deepEqual(Object.keys(required), ["Attachment", "Postroad", "PostroadError", "verify"]);
  assert.deepEqual({ ...imported }, required);
});

test("there are no dependencies at run time", async () => {
  const { dependencies, peerDependencies, optionalDependencies } = require("postroad/package.json");
  assert.deepEqual([dependencies, peerDependencies, optionalDependencies], [undefined, undefined, undefined]);
  const lock = await readFile(join(PACKAGE, "package-lock.json"), "utf8");
  assert.doesNotMatch(lock, /https?:/, "the lock file names the registry that it was made with");
});

test("the process ends with its last call, and waits for no timer", async (t) => {
  const server = await serve(t, [FOUND]);
  const program = `
    const { Postroad } = require("postroad");
    const client = new Postroad({ baseUrl: "${server.url}", token: "t", timeout: 1e9, maxElapsed: 1e9 });
    client.get("em_1", { signal: new AbortController().signal }).then(({ id }) => console.log(id));`;
  const folder = await makeProject(t);
  const { stdout } = await promisify(execFile)(process.execPath, ["--eval", program], { cwd: folder, timeout: 60_000 });
  assert.equal(stdout, "em_1\n");
});
