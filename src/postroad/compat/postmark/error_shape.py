"""Our errors in the shape of Postmark: `{ErrorCode, Message}`."""

from collections.abc import Mapping
from typing import Final

import msgspec

from postroad import errors


class Error(msgspec.Struct, frozen=True, rename="pascal"):
    """Postmark's error object."""

    error_code: int
    message: str


# Status and ErrorCode of each kind of error.
SHAPES: Final[Mapping[type[errors.PostroadError], tuple[int, int]]] = {
    errors.Unauthorized: (401, 10),
    errors.PostroadError: (0, 0),
}


def shape(error: errors.PostroadError, message: str) -> tuple[int, Error]:
    """The status and body of an error. Kinds without an entry keep their status and have the code 0."""
    status, code = next(SHAPES[kind] for kind in type(error).__mro__ if kind in SHAPES)
    return status or error.status, Error(code, message)
