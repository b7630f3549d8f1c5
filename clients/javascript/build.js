// Writes index.cjs and node.cjs, for `require`: they are made of the modules, and committed, so that a checkout works as
// it is. `--check` writes nothing, and fails when they are not what the modules would make.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

async function bundle(entry, external) {
  const { outputFiles } = await build({
    absWorkingDir: FOLDER,
    entryPoints: [entry],
    banner: { js: `// Made of ${entry} and lib by build.js.` },
    bundle: true,
    external,
    format: "cjs",
    platform: "node",
    target: "node18",
    write: false,
  });
  return outputFiles[0].text.replaceAll('require("./index.js")', 'require("./index.cjs")');
}

const made = { "index.cjs": await bundle("index.js", []), "node.cjs": await bundle("node.js", ["./index.js"]) };
for (const [name, text] of Object.entries(made)) {
  const file = new URL(name, import.meta.url);
  if (!process.argv.includes("--check")) await writeFile(file, text);
  else if ((await readFile(file, "utf8").catch(() => "")) !== text) throw new Error(`${name} is old: run \`npm run build\``);
}
