// Signatures and events of webhooks, by the vectors that all clients share.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { PostroadError, SignatureVerificationError, parseEvent } from "../index.js";
import { verify } from "../node.js";
import { stopClock } from "./support/clock.js";

const SHARED = new URL("../../conformance/webhook-signatures.json", import.meta.url);
const { vectors, events } = JSON.parse(await readFile(SHARED, "utf8"));

for (const { name, body_base64: body, header, secret, tolerance, now, valid } of vectors) {
  test(name, () => assert.equal(verify(Buffer.from(body, "base64"), header, secret, tolerance, now), valid));
}

function sign(body, secret, time) {
  return `t=${time},v1=${createHmac("sha256", secret).update(`${time}.${body}`).digest("hex")}`;
}

test("the clock and 300 seconds are there by themselves", (t) => {
  stopClock(t, { now: 1_700_000_000_999 });
  assert.equal(verify("{}", sign("{}", "whsec_x", 1_700_000_300), "whsec_x"), true);
  assert.equal(verify("{}", sign("{}", "whsec_x", 1_700_000_301), "whsec_x"), false);
});

test("a body may be text", () => {
  assert.equal(verify('"ü"', sign('"ü"', "whsec_x", 1), "whsec_x", 300, 1), true);
});

test("what a body parser or a proxy may leave behind is not trusted, and no error", () => {
  const header = sign("", "whsec_x", 1);
  for (const body of [undefined, null, {}, [], 1]) assert.equal(verify(body, header, "whsec_x", 300, 1), false);
  for (const value of [undefined, null, [header], 1, "\0", ",".repeat(10_000), "=".repeat(10_000)]) {
    assert.equal(verify("", value, "whsec_x", 300, 1), false);
  }
  assert.equal(verify("", header, "whsec_x", NaN, 1), false);
});

test("a secret that is missing is a mistake of the application", () => {
  assert.throws(() => verify("", "", undefined), TypeError);
});

for (const { name, body_base64: body, header, secrets, tolerance, now, expect } of events) {
  test(`event: ${name}`, async () => {
    const parsing = parseEvent(Buffer.from(body, "base64"), header, secrets, tolerance, now);
    if (!expect.event) {
      await assert.rejects(parsing, expect.error ? SignatureVerificationError : /^TypeError: the body is no event/);
      return;
    }
    const { createdAt, data, ...same } = await parsing;
    const { created_at: expectedAt, data: expected, ...rest } = expect.event;
    assert.deepEqual(same, rest);
    assert.equal(createdAt?.getTime(), expectedAt === null ? undefined : Date.parse(expectedAt));
    const { emailId, recipientId, smtpCode, smtpResponse, ...others } = data;
    const renamed = { email_id: emailId, recipient_id: recipientId, smtp_code: smtpCode, smtp_response: smtpResponse };
    for (const [member, value] of Object.entries(expected)) assert.equal({ ...others, ...renamed }[member], value);
  });
}

test("an event may be text, of one secret, and is looked at by the clock", async (t) => {
  stopClock(t, { now: 7_000 });
  const body = '{"id":"evt_1","type":"email.failed","data":{"subject":"ü"}}';
  assert.equal((await parseEvent(body, sign(body, "whsec_x", 7), "whsec_x")).data.subject, "ü");
  await assert.rejects(parseEvent(body, sign(body, "whsec_x", 308), "whsec_x"), SignatureVerificationError);
});

test("an event that is not to be trusted is an error of the package", async () => {
  for (const [body, header] of [["{}", null], [{}, sign("{}", "whsec_x", 1)], [undefined, "t=1"], ["{}", ["t=1"]]]) {
    const failed = await parseEvent(body, header, ["whsec_x"], 300, 1).catch((error) => error);
    assert.ok(failed instanceof PostroadError);
    assert.deepEqual([failed.name, failed.code, failed.status, failed.isRetryable], ["SignatureVerificationError", "invalid_signature", null, false]);
  }
  await assert.rejects(parseEvent("{}", "", undefined), TypeError);
});
