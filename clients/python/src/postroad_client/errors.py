"""What goes wrong with a request: one error, and a subclass of it for each kind. Bad arguments are a ValueError."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from postroad_client import answers

# What the client itself says, where Postroad did not speak.
CONNECTION_FAILED: Final = "connection_failed"
TIMED_OUT: Final = "timed_out"
UNEXPECTED_RESPONSE: Final = "unexpected_response"
INVALID_SIGNATURE: Final = "invalid_signature"

INSUFFICIENT_CREDITS: Final = "insufficient_credits"

# Sending again is safe, because of the key. What a proxy says while the service restarts is here as well.
RETRYABLE_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})
RETRYABLE_CODES: Final = frozenset({"idempotency_in_progress", CONNECTION_FAILED, TIMED_OUT})


class PostroadError(Exception):
    """A request was refused, or got no response of Postroad; `docs/errors.md` of Postroad explains each `code`."""

    # Only the message is required, so that pickle can make the error anew in another process.
    def __init__(
        self,
        message: str,
        *,
        code: str = UNEXPECTED_RESPONSE,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.idempotency_key = idempotency_key

    @property
    def is_retryable(self) -> bool:
        """The same request may succeed later; a send with the same `idempotency_key`."""
        return self.status in RETRYABLE_STATUSES or self.code in RETRYABLE_CODES

    @property
    def is_insufficient_credits(self) -> bool:
        """The account has fewer credits than the message has recipients."""
        return self.code == INSUFFICIENT_CREDITS

    @property
    def is_idempotency_conflict(self) -> bool:
        """The key was used for another message in the last 24 hours."""
        return self.code == "idempotency_conflict"


class InvalidRequestError(PostroadError):
    """The request is not valid: 400, 413, and every other 4xx that has no class of its own."""


class AuthenticationError(PostroadError):
    """The credential is not valid: 401."""


class InsufficientCreditsError(PostroadError):
    """The account has fewer credits than the message has recipients: 402."""


class PermissionDeniedError(PostroadError):
    """The credential is valid and may not do this: 403."""


class NotFoundError(PostroadError):
    """There is no such message: 404."""


class IdempotencyError(PostroadError):
    """The key was used for another message, or its first request is still in progress: 409."""


class RateLimitError(PostroadError):
    """Too much was sent; `retry_after` may say when to go on: 429."""


class ServerError(PostroadError):
    """The service, or a proxy before it, could not do it: 5xx."""


class ConnectionFailedError(PostroadError):
    """No connection was made, or it was lost before the response was complete."""


class TimedOutError(PostroadError):
    """There was no complete response in time, or the message of a `wait` was not final in time."""

    # What `wait` saw last.
    last_message: answers.Message | None = None


class UnexpectedResponseError(PostroadError):
    """What came is not what Postroad sends, or no HTTP at all."""


class SignatureVerificationError(PostroadError):
    """A webhook was not signed with the secret, or not just now."""


BY_CODE: Final[dict[str, type[PostroadError]]] = {
    CONNECTION_FAILED: ConnectionFailedError,
    TIMED_OUT: TimedOutError,
}
BY_STATUS: Final[dict[int, type[PostroadError]]] = {
    401: AuthenticationError,
    402: InsufficientCreditsError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: IdempotencyError,
    429: RateLimitError,
}


def kind(status: int | None, code: str) -> type[PostroadError]:
    """The class for a status, None when there was no response, and a code."""
    if code == INSUFFICIENT_CREDITS:
        return InsufficientCreditsError
    if status is None:
        return BY_CODE.get(code, UnexpectedResponseError)
    if status < HTTPStatus.BAD_REQUEST:
        return UnexpectedResponseError
    return BY_STATUS.get(status, InvalidRequestError if status < HTTPStatus.INTERNAL_SERVER_ERROR else ServerError)
