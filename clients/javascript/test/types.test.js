// The types, with the real compiler, in all the ways that an application may load the package.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { PACKAGE, makeProject } from "./support/project.js";

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
    await copyFile(join(PACKAGE, "test", "types.ts"), join(folder, type, "types.ts"));
  }
  await compile(folder, ["module/types.ts", "commonjs/types.ts"], ["--module", "node16"]);
});

test("a project that is bundled", async (t) => {
  const folder = await makeProject(t);
  await copyFile(join(PACKAGE, "test", "types.ts"), join(folder, "types.ts"));
  await compile(folder, ["types.ts"], ["--module", "esnext", "--moduleResolution", "bundler"]);
});
