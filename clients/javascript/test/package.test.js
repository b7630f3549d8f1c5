// The package as others load it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { PACKAGE, makeProject } from "./support/project.js";
import { VERSION } from "../lib/version.js";
import { EMAIL, FOUND, refusal, serve } from "./support/server.js";

const OFFERED = [
  "Attachment", "AuthenticationError", "ConnectionFailedError", "IdempotencyError", "InsufficientCreditsError",
  "InvalidRequestError", "NotFoundError", "PermissionDeniedError", "Postroad", "PostroadError", "RateLimitError",
  "ServerError", "SignatureVerificationError", "TimedOutError", "UnexpectedResponseError", "parseEvent",
];
const require = createRequire(import.meta.url);

test("import and require give the same things, and nothing else", async () => {
  for (const [entry, names] of Object.entries({ postroad: OFFERED, "postroad/node": ["attachmentFromFile", "nodemailerTransport", "verify", "webhookMiddleware"] })) {
    assert.deepEqual(Object.keys(await import(entry)), names);
    assert.deepEqual(Object.keys(require(entry)).sort(), names);
  }
});

test("what is made for require is made of the modules as they are", async () => {
  const building = promisify(execFile)(process.execPath, ["build.js", "--check"], { cwd: PACKAGE });
  await assert.doesNotReject(building, "is esbuild there? `npm ci` installs it; `npm run build` makes the files");
});

test("a program of CommonJS sends a file, verifies, and tells errors apart", async (t) => {
  const server = await serve(t, [refusal(429, "rate_limited", { "Retry-After": "3600" })]);
  const { Attachment, Postroad, PostroadError, RateLimitError } = require("postroad");
  const { attachmentFromFile, verify } = require("postroad/node");
  const attachment = await attachmentFromFile(join(PACKAGE, "package.json"));
  assert.ok(attachment instanceof Attachment);
  assert.equal(verify("", "", "whsec_x"), false);
  const client = new Postroad({ baseUrl: server.url, token: "t" });
  await assert.rejects(client.send({ ...EMAIL, attachments: [attachment] }), (error) => {
    return error instanceof RateLimitError && error instanceof PostroadError && error.name === "RateLimitError";
  });
  assert.equal(JSON.parse(server.requests[0].body).attachments[0].filename, "package.json");
});

test("the version is that of package.json", () => assert.equal(VERSION, require("postroad/package.json").version));

test("what is published names where it comes from", () => {
  const { homepage, bugs, repository, keywords } = require("postroad/package.json");
  for (const url of [homepage, bugs, repository.url]) assert.match(url, /https:\/\/github\.com\/postroad\/postroad/);
  assert.equal(repository.directory, "clients/javascript");
  assert.ok(keywords.includes("email"));
});

test("a package holds what applications need, and no more", async () => {
  const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: PACKAGE });
  const names = JSON.parse(stdout)[0].files.map(({ path }) => path);
  for (const name of ["CHANGELOG.md", "LICENSE", "README.md", "index.cjs", "index.d.cts", "index.d.ts", "index.js"]) {
    assert.ok(names.includes(name), name);
  }
  for (const name of ["node.cjs", "node.d.cts", "node.d.ts", "node.js", "lib/platform.js", "lib/platform.node.js"]) {
    assert.ok(names.includes(name), name);
  }
  assert.deepEqual(names.filter((name) => /^(test|conformance|node_modules|build)/.test(name)), []);
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
