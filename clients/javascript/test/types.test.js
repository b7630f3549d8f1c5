"use strict";
// The types, with the real compiler, in all the ways that an application may load the package.

const assert = require("node:assert/strict");
const { execFile } = require("node:child_process");
const { copyFile, mkdir, writeFile } = require("node:fs/promises");
const { join } = require("node:path");
const { test } = require("node:test");
const { promisify } = require("node:util");
const { PACKAGE, makeProject } = require("./support/project.js");

const STRICT = ["--noEmit", "--strict", "--exactOptionalPropertyTypes"];
const NODE = ["--target", "es2022", "--lib", "es2022", "--types", "node"];

async function compile(folder, files, options) {
  const installed = join(PACKAGE, "node_modules");
  const compiler = join(installed, "typescript", "bin", "tsc");
  const command = [compiler, ...STRICT, ...NODE, "--typeRoots", join(installed, "@types"), ...options, ...files];
  try {
    await promisify(execFile)(process.execPath, command, { cwd: folder });
  } catch (error) {
    assert.fail(error.stdout || `${error.message}\nIs the compiler there? \`npm ci\` installs it.`);
  }
}

test("a project of ECMAScript modules and one of CommonJS", async (t) => {
  const folder = await makeProject(t);
  for (const type of ["module", "commonjs"]) {
    await mkdir(join(folder, type));
    await writeFile(join(folder, type, "package.json"), JSON.stringify({ type }));
    await copyFile(join(__dirname, "types.ts"), join(folder, type, "types.ts"));
  }
  await compile(folder, ["module/types.ts", "commonjs/types.ts"], ["--module", "node16"]);
});

test("a project that is bundled", async (t) => {
  const folder = await makeProject(t);
  await copyFile(join(__dirname, "types.ts"), join(folder, "types.ts"));
  await compile(folder, ["types.ts"], ["--module", "esnext", "--moduleResolution", "bundler"]);
});
