// The header Retry-After: a number of seconds, or an HTTP date.

import { clock } from "./clock.js";

/** Seconds to wait; null when the header says nothing useful. */
function readRetryAfter(value) {
  if (value === null) return null;
  if (/^[0-9]+$/.test(value)) return Math.min(Number(value), Number.MAX_SAFE_INTEGER);
  // Date.parse alone would also take "1.5" and "-5" for dates.
  if (!/^[A-Z][a-z]+, .+ GMT$/.test(value)) return null;
  const seconds = (Date.parse(value) - clock.now()) / 1000;
  return seconds > 0 ? seconds : null;
}

export { readRetryAfter };
