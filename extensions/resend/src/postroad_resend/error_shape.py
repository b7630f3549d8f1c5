"""Our errors in the shape of Resend: `{name, message, statusCode}`, with the names that its packages know.

An error that has no counterpart gets the nearest name; the message is ours and says what to do.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad import errors
from postroad.api import extension_api
from postroad.mail.accept import approval_limit


class Error(msgspec.Struct, frozen=True):
    """Resend's error object."""

    name: str
    message: str
    status: int = msgspec.field(name="statusCode")


# Status and name of each kind of error. The most special kind comes first in its class's resolution order.
SHAPES: Final[Mapping[type[errors.PostroadError], tuple[int, str]]] = {
    extension_api.MissingKey: (401, "missing_api_key"),
    extension_api.RestrictedKey: (401, "restricted_api_key"),
    errors.Unauthorized: (403, "invalid_api_key"),
    errors.InvalidIdempotencyKey: (400, "invalid_idempotency_key"),
    errors.MethodNotAllowed: (405, "method_not_allowed"),
    errors.InvalidRequest: (422, "validation_error"),
    errors.PayloadTooLarge: (413, "validation_error"),
    errors.Forbidden: (403, "validation_error"),
    # Resend has nothing like it; its packages pass on names that they do not know.
    approval_limit.ApprovalRequired: (403, "approval_required"),
    errors.AccountSuspended: (403, "invalid_access"),
    errors.NotFound: (404, "not_found"),
    errors.Conflict: (409, "validation_error"),
    errors.IdempotencyConflict: (409, "invalid_idempotent_request"),
    errors.IdempotencyInProgress: (409, "concurrent_idempotent_requests"),
    errors.InsufficientCredits: (429, "monthly_quota_exceeded"),
    errors.WarmupLimited: (429, "daily_quota_exceeded"),
    errors.RateLimited: (429, "rate_limit_exceeded"),
    errors.ServiceUnavailable: (503, "application_error"),
    errors.TemporaryFailure: (503, "application_error"),
    errors.InternalError: (500, "internal_server_error"),
}


def shape(error: errors.PostroadError, message: str) -> tuple[int, Error]:
    """The status and body of an error."""
    status, name = next(SHAPES[kind] for kind in type(error).__mro__ if kind in SHAPES)
    return status, Error(name, message, status)
