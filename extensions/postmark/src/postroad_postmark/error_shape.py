"""Our errors in the shape of Postmark: `{ErrorCode, Message}`, with the numbers that its packages know.

An error that has no counterpart gets the nearest number; the message is ours and says what to do. A path that does not
exist here has the number 404, which Postmark does not use.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad import errors
from postroad.mail.accept import approval_limit


class MessageNotFound(errors.NotFound):
    """No such message in this account."""


class BounceNotFound(errors.NotFound):
    """No such bounce in this account."""


class TemplateNotFound(errors.NotFound):
    """No such template in this account."""


class DomainNotFound(errors.NotFound):
    """No such domain in this account."""


class TooManyMessages(errors.InvalidRequest):
    """A batch has more messages than Postmark allows."""


class TemplateWithBody(errors.InvalidRequest):
    """A message has a template and a body of its own."""


class Error(msgspec.Struct, frozen=True, rename="pascal"):
    """Postmark's error object; also its confirmation of a deletion, with the code 0."""

    error_code: int
    message: str


# Status and ErrorCode of each kind of error. The most special kind comes first in its class's resolution order.
SHAPES: Final[Mapping[type[errors.PostroadError], tuple[int, int]]] = {
    errors.Unauthorized: (401, 10),
    errors.InvalidJson: (422, 402),
    errors.MethodNotAllowed: (405, 404),
    TooManyMessages: (422, 410),
    TemplateWithBody: (422, 1123),
    errors.InvalidRequest: (422, 300),
    errors.PayloadTooLarge: (413, 300),
    errors.Forbidden: (422, 400),
    # Postmark's number for an account that waits for approval.
    approval_limit.ApprovalRequired: (422, 412),
    errors.InsufficientCredits: (422, 405),
    errors.AccountSuspended: (422, 413),
    MessageNotFound: (422, 701),
    BounceNotFound: (422, 407),
    TemplateNotFound: (422, 1101),
    DomainNotFound: (422, 510),
    errors.NotFound: (404, 404),
    errors.Conflict: (422, 300),
    errors.IdempotencyConflict: (409, 300),
    errors.IdempotencyInProgress: (409, 300),
    errors.RateLimited: (429, 429),
    errors.WarmupLimited: (429, 429),
    errors.ServiceUnavailable: (503, 100),
    errors.TemporaryFailure: (503, 100),
    errors.InternalError: (500, 100),
}
# The same for the items of a batch, whose errors have only our code.
CODES: Final = {kind.code: code for kind, (_, code) in SHAPES.items() if errors.PostroadError in kind.__bases__}


def shape(error: errors.PostroadError, message: str) -> tuple[int, Error]:
    """The status and body of an error."""
    status, code = next(SHAPES[kind] for kind in type(error).__mro__ if kind in SHAPES)
    return status, Error(code, message)
