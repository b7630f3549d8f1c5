"""What callers can cause.

Every refusal that may leave a door is one of these classes. Each knows its public code word, its HTTP status and its
SMTP reply (docs/errors.md), so that no door keeps a table of its own. The message is public text: it names the
field and what to do, never a secret or an internal. `tests/test_errors.py` holds this file against that page.
"""

from typing import ClassVar


class PostroadError(Exception):
    """A refusal with a public message, a code word, an HTTP status and an SMTP reply."""

    code: ClassVar[str]
    status: ClassVar[int]
    smtp_reply: ClassVar[str]

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        # What a door has to say beside it, as header fields of HTTP.
        self.headers: tuple[tuple[str, str], ...] = ()


class InvalidRequest(PostroadError):
    """The request is malformed, breaks a documented limit, or names something that does not exist."""

    code = "invalid_request"
    status = 400
    smtp_reply = "550 5.6.0"


class MethodNotAllowed(InvalidRequest):
    """The path exists, but not with this method."""

    status = 405

    def __init__(self, message: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class MailLoop(InvalidRequest):
    """The message has passed so many hosts that it must be going in circles."""

    smtp_reply = "554 5.4.6"


class Unauthorized(PostroadError):
    """The credential is missing, malformed, unknown, revoked, expired, or of the wrong kind for the route."""

    code = "unauthorized"
    status = 401
    smtp_reply = "535 5.7.8"


class InsufficientCredits(PostroadError):
    """The account has fewer available credits than the message has unique recipients."""

    code = "insufficient_credits"
    status = 402
    smtp_reply = "550 5.7.1"


class Forbidden(PostroadError):
    """The sender domain is not the account's, or the role may not do this."""

    code = "forbidden"
    status = 403
    smtp_reply = "550 5.7.1"


class AccountSuspended(PostroadError):
    """The account may read, but not send."""

    code = "account_suspended"
    status = 403
    smtp_reply = "550 5.7.1"


class NotFound(PostroadError):
    """There is no such thing in this account."""

    code = "not_found"
    status = 404
    smtp_reply = "550 5.1.1"


class Conflict(PostroadError):
    """The thing exists already, or its state forbids the action."""

    code = "conflict"
    status = 409
    smtp_reply = "550 5.7.1"


class IdempotencyConflict(PostroadError):
    """The idempotency key was used with a different body."""

    code = "idempotency_conflict"
    status = 409
    smtp_reply = "550 5.7.1"


class IdempotencyInProgress(PostroadError):
    """The first request with this idempotency key is still running."""

    code = "idempotency_in_progress"
    status = 409
    smtp_reply = "451 4.7.1"

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=1)


class PayloadTooLarge(PostroadError):
    """The assembled message exceeds 10 MiB, or the request body is too large to hold one."""

    code = "payload_too_large"
    status = 413
    smtp_reply = "552 5.3.4"


class RateLimited(PostroadError):
    """Too many requests, or a cool-down has not passed."""

    code = "rate_limited"
    status = 429
    smtp_reply = "451 4.7.1"


class WarmupLimited(PostroadError):
    """The sender domain's warm-up volume for the day is used up."""

    code = "warmup_limited"
    status = 429
    smtp_reply = "451 4.7.1"


class InternalError(PostroadError):
    """A bug of ours; the log knows it by the request id."""

    code = "internal_error"
    status = 500
    smtp_reply = "451 4.3.0"


class ServiceUnavailable(PostroadError):
    """The service is stopping, or its store is unreachable or full."""

    code = "service_unavailable"
    status = 503
    smtp_reply = "421 4.3.2"


class TemporaryFailure(PostroadError):
    """This request could not be stored in time; nothing was accepted, and a retry with the same key is safe."""

    code = "temporary_failure"
    status = 503
    smtp_reply = "451 4.3.0"
