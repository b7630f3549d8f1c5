// A folder of an application that has the package installed.

import { mkdir, mkdtemp, realpath, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

async function makeProject(t) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "postroad-")));
  t.after(() => rm(folder, { recursive: true, maxRetries: 3 }));
  await mkdir(join(folder, "node_modules"));
  await symlink(PACKAGE, join(folder, "node_modules", "postroad"), "junction");
  return folder;
}

export { PACKAGE, makeProject };
