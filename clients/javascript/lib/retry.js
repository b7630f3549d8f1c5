"use strict";
// Attempts and the pauses between them, bounded in number and in time.

const { clock } = require("./clock.js");
const { PostroadError } = require("./error.js");

const FIRST_BACK_OFF = 500;
const LONGEST_BACK_OFF = 8_000;

/**
 * Calls `attempt(timeout)` until it gives a `value`, or a `failure` that is not worth another attempt.
 * Whatever it throws ends everything at once.
 */
async function withRetries(attempt, { timeout, maxRetries, maxElapsed }, { idempotencyKey, signal }) {
  const deadline = clock.elapsed() + maxElapsed;
  const timeLeft = () => Math.max(1, deadline - clock.elapsed()); // Never nothing: a pause may end a little late.
  for (let attempts = 1; ; attempts++) {
    const { value, failure } = await attempt(Math.min(timeout, timeLeft()));
    if (!failure) return value;
    const error = new PostroadError(failure.text, { ...failure, idempotencyKey, attempts });
    if (!error.isRetryable || attempts > maxRetries) throw error;
    const wait = (error.retryAfter ?? 0) * 1000 + backOff(attempts);
    if (wait >= timeLeft()) throw error;
    await sleep(wait, signal);
  }
}

/** Between half and all of a time that doubles; chance keeps clients that failed together from coming back together. */
function backOff(retry) {
  return Math.min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2 ** (retry - 1)) * (0.5 + clock.random() / 2);
}

async function sleep(wait, signal) {
  try {
    await clock.sleep(wait, signal);
  } catch (error) {
    signal?.throwIfAborted(); // With the application's own reason.
    throw error;
  }
}

module.exports = { withRetries };
