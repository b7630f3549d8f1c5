"""Errors that callers can cause.

Every error that leaves the service is one of these classes. Each has its public code, its HTTP status and its SMTP
reply, so that no interface keeps a table of its own; docs/errors.md is made of these classes, and the OpenAPI document
has their docstrings. The message is public text: it names the field and what to do, and never contains a secret or an
internal detail.
"""

from typing import ClassVar


class PostroadError(Exception):
    """An error with a public message, a code, an HTTP status and an SMTP reply."""

    code: ClassVar[str]
    # What the caller can do.
    advice: ClassVar[str]
    status: ClassVar[int]
    smtp_reply: ClassVar[str]

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        # Extra HTTP header fields, set by the handler.
        self.headers: tuple[tuple[str, str], ...] = ()


class InvalidRequest(PostroadError):
    """The request is malformed, breaks a documented limit, or names something that does not exist."""

    code = "invalid_request"
    advice = "Correct what `error` names. The same request gets the same error."
    status = 400
    smtp_reply = "550 5.6.0"


class InvalidJson(InvalidRequest):
    """The body is not JSON."""


class MethodNotAllowed(InvalidRequest):
    """The path exists, but not with this method."""

    status = 405

    def __init__(self, message: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class InvalidIdempotencyKey(InvalidRequest):
    """The `Idempotency-Key` is missing or too long."""


class MailLoop(InvalidRequest):
    """The message has passed too many hosts: a mail loop."""

    smtp_reply = "554 5.4.6"


class Unauthorized(PostroadError):
    """The credential is missing, malformed, unknown, revoked, expired, or of the wrong kind for the route."""

    code = "unauthorized"
    advice = "Send a credential that the route accepts. Log in again when a token has expired."
    status = 401
    smtp_reply = "535 5.7.8"


class AccountClosed(Unauthorized):
    """The account of the credential is closed."""


class CreatorDisabled(Unauthorized):
    """The API key or SMTP credential does not work while the user who created it is disabled."""


class SecondFactorRequired(Unauthorized):
    """The password is right, and the login has a second factor: its code is missing or wrong."""


class InsufficientCredits(PostroadError):
    """The account has fewer available credits than the message has unique recipients."""

    code = "insufficient_credits"
    advice = "Add credits, or raise the budget of the API key, and send again with the same key."
    status = 402
    # Temporary, so that a relay keeps the message until credits are added (RFC 5321 section 4.2.1).
    smtp_reply = "452 4.7.1"


class Forbidden(PostroadError):
    """The sender domain is not verified by the account, or the role or API key does not permit this."""

    code = "forbidden"
    advice = "Verify the domain, ask an owner or admin, or confirm with `POST /v1/auth/confirm`."
    status = 403
    smtp_reply = "550 5.7.1"


class SecondFactorMissing(Forbidden):
    """The account requires a second factor of its users, and this one has none."""


class ConfirmationRequired(Forbidden):
    """The action is sensitive, and the person's last proof of who they are is too old."""


class AccountSuspended(PostroadError):
    """The account is suspended: it can read, but not send."""

    code = "account_suspended"
    advice = "Resolve the reason that `error` gives. It says when sending resumes; otherwise ask the operator."
    status = 403
    smtp_reply = "550 5.7.1"


class NotFound(PostroadError):
    """The resource does not exist in this account."""

    code = "not_found"
    advice = "Check the id, and the account of the credential."
    status = 404
    smtp_reply = "550 5.1.1"


class UnknownPath(NotFound):
    """No route has this path."""


class Conflict(PostroadError):
    """The resource already exists, its state does not permit the action, or the account has reached a quota."""

    code = "conflict"
    advice = "Get its current state, then decide."
    status = 409
    smtp_reply = "550 5.7.1"


class IdempotencyConflict(PostroadError):
    """The idempotency key was used with a different body."""

    code = "idempotency_conflict"
    advice = "Use a new key for a new message."
    status = 409
    smtp_reply = "550 5.7.1"


class IdempotencyInProgress(PostroadError):
    """The first request with this idempotency key is still running."""

    code = "idempotency_in_progress"
    advice = "Wait a second and send the same request again: you get the first response."
    status = 409
    smtp_reply = "451 4.7.1"

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=1)


class PayloadTooLarge(PostroadError):
    """The assembled message exceeds 10 MiB or a storage quota, or the request body exceeds the limit of its route."""

    code = "payload_too_large"
    advice = "Send less; link to large files instead of attaching them."
    status = 413
    smtp_reply = "552 5.3.4"


class RateLimited(PostroadError):
    """Too many requests, a daily limit or a storage quota is reached, or a cool-down is still active."""

    code = "rate_limited"
    advice = "Wait for `Retry-After` seconds, then retry with the same key."
    status = 429
    smtp_reply = "451 4.7.1"


class WarmupLimited(PostroadError):
    """The sender domain has used up its warm-up volume for today."""

    code = "warmup_limited"
    advice = "Retry with the same key after 00:00 UTC (`Retry-After`), or send from a warm domain."
    status = 429
    smtp_reply = "451 4.7.1"


class InternalError(PostroadError):
    """An unexpected error in the service, logged with the request id."""

    code = "internal_error"
    advice = "Retry later with the same key, and report the `request_id`."
    status = 500
    smtp_reply = "451 4.3.0"


class ServiceUnavailable(PostroadError):
    """The service is stopping or overloaded, its queue or disk is full, or its database is unreachable."""

    code = "service_unavailable"
    advice = "Wait for `Retry-After` seconds, then retry with the same key."
    status = 503
    smtp_reply = "421 4.3.2"


class TemporaryFailure(PostroadError):
    """The request did not arrive or could not be stored in time. Nothing was accepted; retry it with the same key."""

    code = "temporary_failure"
    advice = "Wait for `Retry-After` seconds, then retry with the same key."
    status = 503
    smtp_reply = "451 4.3.0"
