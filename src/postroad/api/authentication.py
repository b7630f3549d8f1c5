"""Authentication of API requests by `Authorization`, and the endpoints that need a recent confirmation."""

from collections.abc import Awaitable
from typing import Final

from postroad import context, errors
from postroad.model.people import callers
from postroad.protocol.text import http_values
from postroad.services.people import authentication
from postroad.web import routing


def authenticate(
    ctx: context.Context, headers: routing.Headers, *, client_address: str
) -> callers.Caller | Awaitable[callers.Caller]:
    """The caller that a request's `Authorization` header names."""
    return authentication.find_caller(ctx, field(headers), client_address=client_address)


def field(headers: routing.Headers) -> str | None:
    """The value of `Authorization`. A repeated header is refused."""
    try:
        value = headers.get(http_values.AUTHORIZATION)
    except errors.InvalidRequest as problem:
        raise errors.Unauthorized(problem.message) from None
    return None if value is None else value.decode("latin-1")


# Those of `/v1/webhook` are not among them: the interface promises what they answer to a login token.
STEP_UP_ROUTES: Final = frozenset(
    {
        "POST /v1/api-keys",
        "PATCH /v1/api-keys/{id}",
        "POST /v1/credentials",
        "POST /v1/webhooks",
        "PATCH /v1/webhooks/{webhook}",
        "POST /v1/webhooks/{webhook}/rotate-secret",
        "POST /v1/domains/{id}/rotate-key",
        "DELETE /v1/domains/{id}",
        "POST /v1/team",
        "PATCH /v1/team/{id}",
        "DELETE /v1/team/{id}",
        "PUT /v1/sso",
        "DELETE /v1/sso",
        "POST /v1/team/{id}/password-link",
        "POST /v1/team/{id}/recovery-link",
        "PATCH /v1/account",
        "GET /v1/account/ledger.csv",
        "GET /v1/inbound/{id}/raw",
        "GET /v1/messages/{id}/raw",
        "GET /v1/suppressions/export",
        "POST /v1/operator/accounts/{id}/close",
        "POST /v1/operator/accounts/{id}/recovery-link",
        "POST /v1/operator/operators",
        "DELETE /v1/operator/operators/{id}",
    }
)
