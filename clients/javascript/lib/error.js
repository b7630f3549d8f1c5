"use strict";
// The one error of everything that goes wrong with a request.

const RETRYABLE_STATUSES = [429, 503];
const RETRYABLE_CODES = ["idempotency_in_progress", "connection_failed", "timed_out"];

class PostroadError extends Error {
  constructor(text, { code, status, requestId, retryAfter, idempotencyKey, attempts = 1, cause }) {
    const remarks = [requestId, attempts > 1 && `${attempts} attempts`].filter(Boolean).join(", ");
    super(`${status ? `${status} ` : ""}${code}: ${text}${remarks && ` (${remarks})`}`, cause && { cause });
    this.code = code;
    this.status = status ?? null;
    this.requestId = requestId ?? null;
    this.retryAfter = retryAfter ?? null;
    this.idempotencyKey = idempotencyKey ?? null;
  }

  // Not a field: it says nothing about one error, and should not be printed with each.
  get name() {
    return "PostroadError";
  }

  get isRetryable() {
    return RETRYABLE_STATUSES.includes(this.status) || RETRYABLE_CODES.includes(this.code);
  }

  get isInsufficientCredits() {
    return this.code === "insufficient_credits";
  }

  get isIdempotencyConflict() {
    return this.code === "idempotency_conflict";
  }
}

module.exports = { PostroadError };
