"""Authentication of API requests by their `Authorization` header."""

from collections.abc import Coroutine
from typing import Any

from postroad import errors
from postroad.model import caller
from postroad.protocol import authorization
from postroad.services import context
from postroad.services.auth import authentication
from postroad.web import routing


def authenticate(
    ctx: context.Context, headers: routing.Headers, *, client_address: str
) -> Coroutine[Any, Any, caller.Caller]:
    """The caller that a request's `Authorization` header names."""
    return authentication.authenticate(ctx, field(headers), client_address=client_address)


def field(headers: routing.Headers) -> str | None:
    """The value of `Authorization`. A repeated header is refused."""
    try:
        value = headers.get(authorization.FIELD)
    except errors.InvalidRequest as problem:
        raise errors.Unauthorized(problem.message) from None
    return None if value is None else value.decode("latin-1")
