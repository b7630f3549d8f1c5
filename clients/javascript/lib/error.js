// What goes wrong with a request: one error, and a subclass of it for each kind.

// Sending again is safe, because of the key. What a proxy says while the service restarts is here as well.
const RETRYABLE_STATUSES = [408, 429, 500, 502, 503, 504];
const RETRYABLE_CODES = ["idempotency_in_progress", "connection_failed", "timed_out"];

export class PostroadError extends Error {
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
  // Not the name of the class either: a minifier changes that.
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

export class InvalidRequestError extends PostroadError {
  get name() {
    return "InvalidRequestError";
  }
}

export class AuthenticationError extends PostroadError {
  get name() {
    return "AuthenticationError";
  }
}

export class InsufficientCreditsError extends PostroadError {
  get name() {
    return "InsufficientCreditsError";
  }
}

export class PermissionDeniedError extends PostroadError {
  get name() {
    return "PermissionDeniedError";
  }
}

export class NotFoundError extends PostroadError {
  get name() {
    return "NotFoundError";
  }
}

export class IdempotencyError extends PostroadError {
  get name() {
    return "IdempotencyError";
  }
}

export class RateLimitError extends PostroadError {
  get name() {
    return "RateLimitError";
  }
}

export class ServerError extends PostroadError {
  get name() {
    return "ServerError";
  }
}

export class ConnectionFailedError extends PostroadError {
  get name() {
    return "ConnectionFailedError";
  }
}

export class TimedOutError extends PostroadError {
  constructor(text, { lastMessage, ...details }) {
    super(text, details);
    this.lastMessage = lastMessage ?? null;
  }

  get name() {
    return "TimedOutError";
  }
}

export class UnexpectedResponseError extends PostroadError {
  get name() {
    return "UnexpectedResponseError";
  }
}

export class SignatureVerificationError extends PostroadError {
  get name() {
    return "SignatureVerificationError";
  }
}

const BY_CODE = { connection_failed: ConnectionFailedError, timed_out: TimedOutError };
const BY_STATUS = {
  401: AuthenticationError,
  402: InsufficientCreditsError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: IdempotencyError,
  429: RateLimitError,
};

/** An error of the class for its status, or for its code when there was no response. */
export function errorOf(text, details) {
  return new (kindOf(details))(text, details);
}

function kindOf({ status, code }) {
  if (code === "insufficient_credits") return InsufficientCreditsError;
  if (!status) return BY_CODE[code] ?? UnexpectedResponseError;
  if (status < 400) return UnexpectedResponseError;
  return BY_STATUS[status] ?? (status < 500 ? InvalidRequestError : ServerError);
}
