"use strict";
// Signatures of webhooks, by the vectors that all clients share.

const assert = require("node:assert/strict");
const { createHmac } = require("node:crypto");
const { test } = require("node:test");
const { verify } = require("../index.js");
const { vectors } = require("../../conformance/webhook-signatures.json");
const { stopClock } = require("./support/clock.js");

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
