// Attempts and the pauses between them, bounded in time.

import { clock } from "./clock.js";
import { TimedOutError, errorOf } from "./error.js";

const FIRST_BACK_OFF = 500;
const LONGEST_BACK_OFF = 8_000;
const FIRST_POLL = 1_000;
const POLL_GROWTH = 1.5;
const LONGEST_POLL = 10_000;
const FINAL_STATUSES = ["delivered", "bounced", "failed", "canceled", "expired"];

/**
 * Calls `attempt(timeout)` until it gives a `value`, or a `failure` that is not worth another attempt.
 * Whatever it throws ends everything at once.
 */
async function withRetries(attempt, { timeout, maxElapsed }, { idempotencyKey, signal, isRepeatable = true }) {
  const deadline = clock.elapsed() + maxElapsed;
  const timeLeft = () => Math.max(1, deadline - clock.elapsed()); // Never nothing: a pause may end a little late.
  for (let attempts = 1; ; attempts++) {
    // Without time for retries, the only attempt has all of its own.
    const { value, failure } = await attempt(maxElapsed === 0 ? timeout : Math.min(timeout, timeLeft()));
    if (!failure) return value;
    const error = errorOf(failure.text, { ...failure, idempotencyKey, attempts });
    const pause = (error.retryAfter ?? 0) * 1000 + backOff(attempts);
    const hasDoneNothing = error.status === 429 || error.code === "service_unavailable";
    if (!error.isRetryable || !(isRepeatable || hasDoneNothing) || pause >= deadline - clock.elapsed()) throw error;
    await clock.sleep(pause, signal);
  }
}

/** Between half and all of a time that doubles; chance keeps clients that failed together from coming back together. */
function backOff(retry) {
  return Math.min(LONGEST_BACK_OFF, FIRST_BACK_OFF * 2 ** (retry - 1)) * (0.5 + clock.random() / 2);
}

/** Calls `get` until every recipient of the message is final, further and further apart. */
async function untilFinal(get, { id, timeout, signal }) {
  const deadline = clock.elapsed() + timeout;
  for (let pause = FIRST_POLL, isLast = false; ; pause = Math.min(LONGEST_POLL, pause * POLL_GROWTH)) {
    const message = await get();
    if (isFinal(message)) return message;
    const timeLeft = deadline - clock.elapsed();
    if (isLast || timeLeft <= 0) {
      throw new TimedOutError(`${id} is not final after ${timeout / 1000} s`, { code: "timed_out", lastMessage: message });
    }
    isLast = pause >= timeLeft; // The last pause ends with the time, and one more get follows.
    await clock.sleep(Math.min(pause, timeLeft), signal);
  }
}

function isFinal({ recipients }) {
  return recipients.length > 0 && recipients.every(({ status }) => FINAL_STATUSES.includes(status));
}

export { untilFinal, withRetries };
