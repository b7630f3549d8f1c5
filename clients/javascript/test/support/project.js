"use strict";
// A folder of an application that has the package installed.

const { mkdir, mkdtemp, realpath, rm, symlink } = require("node:fs/promises");
const { tmpdir } = require("node:os");
const { join, resolve } = require("node:path");

const PACKAGE = resolve(__dirname, "../..");

async function makeProject(t) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "postroad-")));
  t.after(() => rm(folder, { recursive: true, maxRetries: 3 }));
  await mkdir(join(folder, "node_modules"));
  await symlink(PACKAGE, join(folder, "node_modules", "postroad"), "junction");
  return folder;
}

module.exports = { PACKAGE, makeProject };
