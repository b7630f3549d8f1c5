"""The one error of everything that goes wrong with a request. Bad arguments are a ValueError."""

from typing import Final

# What the client itself says, where Postroad did not speak.
CONNECTION_FAILED: Final = "connection_failed"
TIMED_OUT: Final = "timed_out"
UNEXPECTED_RESPONSE: Final = "unexpected_response"

RETRYABLE_STATUSES: Final = frozenset({429, 503})
RETRYABLE_CODES: Final = frozenset({"idempotency_in_progress", CONNECTION_FAILED, TIMED_OUT})


class PostroadError(Exception):
    """A request was refused, or got no answer of Postroad; `docs/errors.md` of Postroad explains each `code`."""

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
        return self.code == "insufficient_credits"

    @property
    def is_idempotency_conflict(self) -> bool:
        """The key was used for another message in the last 24 hours."""
        return self.code == "idempotency_conflict"
