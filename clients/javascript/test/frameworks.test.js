// Nodemailer itself with our transport, and the middleware in a server.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { nodemailerTransport, webhookMiddleware } from "../node.js";
import { PACKAGE, makeProject } from "./support/project.js";
import { ACCEPTED, clientOf, refusal, serve } from "./support/server.js";

const nodemailer = createRequire(new URL("../../../tests/compat/package.json", import.meta.url))("nodemailer");
const SECRET = "whsec_x";
const EVENT = '{"id": "evt_1", "type": "email.delivered", "data": {"to": "ada@example.net"}}';

function recorder() {
  const sent = [];
  const client = {
    async send(email, options) {
      sent.push({ email, options });
      return { id: "em_1", status: "queued", to: ["b@example.net"], cc: [], bcc: [] };
    },
  };
  return { sent, transport: nodemailer.createTransport(nodemailerTransport(client)) };
}

test("Nodemailer sends through Postroad", async () => {
  const { sent, transport } = recorder();
  const info = await transport.sendMail({
    from: { name: 'The "Shop"', address: "a@example.com" },
    to: "Ada <b@example.net>, c@example.net",
    replyTo: "help@example.com",
    subject: "Hello",
    text: "Hi",
    html: "<p>Hi <img src='cid:logo'>",
    headers: { "X-Order": "1042" },
    attachments: [
      { filename: "total.txt", content: "42.00" },
      { filename: "logo.png", content: Buffer.from([137, 80]), cid: "logo" },
    ],
    tags: ["receipt"],
    idempotencyKey: "order-1042",
  });
  assert.deepEqual([info.messageId, info.accepted], ["em_1", ["b@example.net"]]);
  const [{ email, options }] = sent;
  assert.deepEqual(options, { idempotencyKey: "order-1042" });
  assert.equal(email.from, '"The \\"Shop\\"" <a@example.com>');
  assert.deepEqual(email.to, ['"Ada" <b@example.net>', "c@example.net"]);
  assert.equal(email.replyTo, "help@example.com");
  assert.deepEqual(Object.values(email.headers), ["1042"]);
  assert.deepEqual([email.subject, email.text, email.tags], ["Hello", "Hi", ["receipt"]]);
  const [total, logo] = email.attachments;
  assert.deepEqual([total.filename, Buffer.from(total.content).toString()], ["total.txt", "42.00"]);
  assert.deepEqual([logo.contentId, [...logo.content]], ["logo", [137, 80]]);
});

test("Nodemailer takes several addresses for replies", async () => {
  const { sent, transport } = recorder();
  const mail = { from: "a@example.com", to: "b@example.net", subject: "Hello", text: "Hi" };
  await transport.sendMail({ ...mail, replyTo: "a@example.com, b@example.com" });
  assert.deepEqual(sent[0].email.replyTo, ["a@example.com", "b@example.com"]);
});

test("Nodemailer hears what Postroad cannot send", async () => {
  const { sent, transport } = recorder();
  const mail = { from: "a@example.com", to: "b@example.net", subject: "Hello", text: "Hi" };
  await assert.rejects(transport.sendMail({ ...mail, icalEvent: { content: "x" } }), /not supported/);
  assert.deepEqual(sent, []);
});

test("Nodemailer verifies the key with the server", async (t) => {
  const server = await serve(t, [refusal(400, "invalid_request"), refusal(401, "unauthorized")]);
  const transport = nodemailer.createTransport(nodemailerTransport(clientOf(server)));
  assert.equal(await transport.verify(), true);
  await assert.rejects(transport.verify(), { code: "unauthorized" });
  const [error] = await new Promise((resolve) => transport.verify((...given) => resolve(given)));
  assert.equal(error.code, "unauthorized");
  assert.deepEqual(server.requests.map(({ url, body }) => [url, body]), Array(3).fill(["/emails", "{}"]));
});

test("the code of the README for frameworks does what it says", async (t) => {
  const server = await serve(t, [refusal(400, "invalid_request"), ACCEPTED]);
  const folder = await makeProject(t);
  const modules = fileURLToPath(new URL("../../../tests/compat/node_modules/", import.meta.url));
  await symlink(join(modules, "nodemailer"), join(folder, "node_modules", "nodemailer"), "junction");
  const readme = await readFile(join(PACKAGE, "README.md"), "utf8");
  const [code] = [...readme.matchAll(/^```javascript\n(.*?)^```$/gms)].map(([, found]) => found);
  await writeFile(join(folder, "app.mjs"), `${code}\nhooks.on("listening", () => console.log(hooks.address().port));`);
  const env = { ...process.env, POSTROAD_URL: server.url, POSTROAD_API_KEY: "x", POSTROAD_WEBHOOK_SECRET: SECRET, PORT: "0" };
  const child = spawn(process.execPath, ["app.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  t.after(async () => {
    child.kill();
    await ended;
  });
  const output = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  assert.equal((await output.next()).value, "em_1");
  const port = (await output.next()).value;
  assert.deepEqual(await post(port, "whsec_y"), [400, "the webhook could not be verified"]);
  assert.deepEqual(await post(port, SECRET), [204, ""]);
  assert.equal((await output.next()).value, "email.delivered ada@example.net");
});

async function post(port, secret) {
  const time = Math.floor(Date.now() / 1000);
  const signature = createHmac("sha256", secret).update(`${time}.${EVENT}`).digest("hex");
  const headers = { "Service-Signature": `t=${time},v1=${signature}`, Connection: "close" };
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", headers, body: EVENT });
  return [response.status, await response.text()];
}

test("a middleware verifies webhooks", async (t) => {
  const middleware = webhookMiddleware(SECRET);
  const server = createServer((request, response) => {
    middleware(request, response, (error) => response.writeHead(error ? 500 : 200).end(request.event?.id));
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address();
  assert.deepEqual(await post(port, SECRET), [200, "evt_1"]);
  assert.deepEqual(await post(port, "whsec_y"), [400, "the webhook could not be verified"]);
});
