"""Requests for the requests log, as an application notes them."""

from postroad import context
from postroad.model.people import callers
from postroad.model.units import identifiers

BODY = b'{"subject": "Hello", "password": "hunter2"}'


def refused(ctx: context.Context, account_id: str, *, body: bytes = BODY, key: str = "") -> callers.FinishedRequest:
    """A send of an SMTP credential, or of an API key with this id, that was refused."""
    api_key = callers.ApiKey(key, "shop", frozenset({callers.Scope.SEND})) if key else None
    return callers.FinishedRequest(
        id=ctx.new_id(identifiers.REQUEST, now=ctx.clock()),
        caller=callers.Caller(account_id, "cred_1", callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS, key=api_key),
        method="POST",
        path=b"/emails",
        status=403,
        code="forbidden",
        error="the domain is not verified",
        client_address="192.0.2.1",
        body_size=len(body),
        body=body,
    )


def note(ctx: context.Context, account_id: str, *, key: str = "", body: bytes = BODY) -> str:
    """Note one; returns its id."""
    request = refused(ctx, account_id, key=key, body=body)
    ctx.request_log.note(request)
    return request.id
