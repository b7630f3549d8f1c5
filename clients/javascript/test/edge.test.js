// The default entry, bundled for a worker at the edge: it needs nothing but what the standards of the web give.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { PACKAGE, makeProject } from "./support/project.js";
import { ACCEPTED, FOUND, serve } from "./support/server.js";

// What workers have, by the Minimum Common Web API. No process, no require, no Buffer.
const GLOBALS = [
  "AbortController", "AbortSignal", "Request", "Response", "Headers", "TextDecoder", "TextEncoder", "URL", "atob", "btoa",
  "clearTimeout", "crypto", "fetch", "performance", "setTimeout",
];

async function bundled(t, platform, conditions) {
  const { outputFiles, warnings } = await build({
    bundle: true,
    conditions,
    format: "iife",
    globalName: "postroad",
    platform,
    stdin: { contents: 'export * from "postroad";', resolveDir: await makeProject(t) },
    write: false,
  });
  assert.deepEqual(warnings, []);
  return outputFiles[0].text;
}

for (const [platform, conditions] of [["browser", []], ["browser", ["workerd", "worker"]], ["neutral", ["edge-light"]]]) {
  test(`a bundle for ${[platform, ...conditions].join(", ")}`, async (t) => {
    const code = await bundled(t, platform, conditions);
    assert.doesNotMatch(code, /\brequire\b|node:|\bprocess\b|\bBuffer\.|\b__dirname\b/);
    const context = createContext(Object.fromEntries(GLOBALS.map((name) => [name, globalThis[name]])));
    const server = await serve(t, [ACCEPTED, { status: 502, text: "<html>" }, FOUND]);
    context.baseUrl = server.url;
    const body = '{"id":"evt_1","type":"email.delivered","data":{"to":"ada@example.net"}}';
    context.body = body;
    context.header = `t=7,v1=${createHmac("sha256", "whsec_x").update(`7.${body}`).digest("hex")}`;
    runInContext(code, context);
    const said = await runInContext(
      `(async () => {
        const client = new postroad.Postroad({ baseUrl, username: "u", password: "pä" });
        const attachments = [{ filename: "a.txt", content: new TextEncoder().encode("ü") }];
        const { id } = await client.send({ from: "a@example.com", to: "b@example.net", subject: "Hi", attachments });
        const { status } = await client.wait(id);
        const event = await postroad.parseEvent(body, header, "whsec_x", 300, 7);
        const forged = await postroad.parseEvent(body, header, "whsec_y", 300, 7).catch((error) => error);
        return JSON.stringify([id, status, event.data.to, forged instanceof postroad.SignatureVerificationError]);
      })()`,
      context,
    );
    assert.deepEqual(JSON.parse(said), ["em_1", "delivered", "ada@example.net", true]);
    const [{ headers, body: sent }] = server.requests;
    assert.equal(headers.authorization, `Basic ${Buffer.from("u:pä").toString("base64")}`);
    assert.match(headers["idempotency-key"], /^[0-9a-f-]{36}$/);
    assert.equal(JSON.parse(sent).attachments[0].content, "w7w=");
  });
}

test("only the files for Node.js import from Node.js", async () => {
  const names = (await readdir(join(PACKAGE, "lib"))).map((name) => `lib/${name}`);
  const files = await Promise.all(["index.js", ...names].map(async (name) => [name, await readFile(join(PACKAGE, name), "utf8")]));
  assert.deepEqual(files.filter(([, text]) => /"node:|\bimport\(/.test(text)).map(([name]) => name), ["lib/platform.node.js"]);
});
