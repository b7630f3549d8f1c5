// Runs the code of README.md, all of it and in order, as one program.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { PACKAGE, makeProject } from "./support/project.js";
import { ACCEPTED, refusal, serve } from "./support/server.js";

const SECRET = "whsec_readme";

async function program() {
  const readme = await readFile(join(PACKAGE, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
  assert.equal(blocks.length, 4);
  return blocks.join("\n");
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function post(port, body, secret) {
  const time = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
  const headers = { "Service-Signature": `t=${time},v1=${signature}` };
  return fetch(`http://127.0.0.1:${port}/hooks`, { method: "POST", body, headers });
}

test("the code of the README does what it says", async (t) => {
  const found = (status, delivered_at) => {
    return { status: 200, json: { id: "em_1", status, recipients: [{ status, delivered_at }] } };
  };
  const server = await serve(t, [
    ACCEPTED, found("queued", null), found("delivered", "2026-01-31T12:00:00.000Z"),
    refusal(402, "insufficient_credits"),
  ]);
  const folder = await makeProject(t);
  await writeFile(join(folder, "receipt.pdf"), "%PDF-");
  await writeFile(join(folder, "readme.mjs"), await program());
  const port = await freePort();
  const env = {
    ...process.env,
    POSTROAD_URL: server.url,
    POSTROAD_API_KEY: "pr_live_x",
    POSTROAD_WEBHOOK_SECRET: SECRET,
    PORT: String(port),
  };
  const child = spawn(process.execPath, ["readme.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  t.after(async () => {
    child.kill();
    await ended;
  });
  const output = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const complaints = createInterface({ input: child.stderr })[Symbol.asyncIterator]();

  assert.equal((await output.next()).value, "delivered 2026-01-31T12:00:00.000Z");
  assert.equal((await complaints.next()).value, "Add credits, then send again.");
  const [{ headers, body }] = server.requests;
  assert.equal(headers["idempotency-key"], "order-1042-receipt");
  assert.deepEqual(JSON.parse(body).attachments, [{ filename: "receipt.pdf", content: "JVBERi0=" }]);

  // It listens right after that; a connection that breaks in the middle of a body does it no harm.
  const broken = await connected(port, child);
  broken.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
  broken.resetAndDestroy();
  const event = JSON.stringify({ id: "evt_1", type: "email.delivered", data: { to: "ada@example.net" } });
  assert.equal((await post(port, event, "whsec_other")).status, 401);
  assert.equal((await post(port, event, SECRET)).status, 204);
  assert.equal((await output.next()).value, "email.delivered ada@example.net");
});

async function connected(port, child) {
  while (child.exitCode === null) {
    const socket = connect(port, "127.0.0.1");
    const isReached = await once(socket, "connect").then(() => true, () => false);
    if (isReached) return socket;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return assert.fail("the program has ended");
}
