// A server that plays a list of steps, one for each request, and remembers the requests.

import { once } from "node:events";
import { createServer } from "node:http";
import { Postroad } from "../../index.js";

/**
 * A step is `{ status, headers, json | text }`, or a function of the response. A request beyond the last step
 * is answered by it again. The server ends with the test.
 */
async function serve(t, steps, host = "127.0.0.1") {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    requests.push({ method, url, headers, body: Buffer.concat(chunks).toString() });
    const step = steps[Math.min(requests.length, steps.length) - 1];
    if (typeof step === "function") return step(response);
    const text = "json" in step ? JSON.stringify(step.json) : step.text;
    response.writeHead(step.status, step.headers).end(text);
  });
  server.listen(0, host);
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { address, port, family } = server.address();
  return { requests, url: `http://${family === "IPv6" ? `[${address}]` : address}:${port}` };
}

/** A client of such a server, with what the test wants to be different. */
function clientOf({ url }, options = {}) {
  return new Postroad({ baseUrl: url, token: "pr_live_x", ...options });
}

const EMAIL = { from: "hello@example.com", to: "ada@example.net", subject: "Hello", text: "Hi." };
const ACCEPTED = { status: 202, json: { id: "em_1", status: "queued" } };
const FOUND = { status: 200, json: { id: "em_1", status: "delivered", recipients: [{ status: "delivered" }] } };

/** A refusal as Postroad writes it. */
function refusal(status, code, headers = {}) {
  return { status, headers, json: { error: `because of ${code}`, code, request_id: "req_1" } };
}

export { ACCEPTED, EMAIL, FOUND, clientOf, refusal, serve };
