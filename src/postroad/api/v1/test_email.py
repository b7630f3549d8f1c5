"""`/v1/test-email`: a message with fixed words, for a person who wants to see mail arrive."""

from typing import Annotated

import msgspec

from postroad import errors
from postroad.api import email_schemas
from postroad.model import caller, receipt
from postroad.services import context
from postroad.services.acceptance import test_message
from postroad.web import routing


class TestEmail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """To whom the test goes, and perhaps from which address."""

    to: Annotated[email_schemas.Address, msgspec.Meta(description="One address; best your own.")]
    sender: (
        Annotated[
            email_schemas.Address,
            msgspec.Meta(description="An address at a domain of the account; without it hello@ the first one."),
        ]
        | None
    ) = msgspec.field(name="from", default=None)


async def send(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send the test message; the answer leaves after it is on disk."""
    if request.caller.scheme is not caller.Scheme.TOKEN:
        raise errors.Unauthorized("Authorization: a test email needs a login token; programs send with POST /emails")
    body: TestEmail = request.body
    sender = body.sender
    if sender is None:
        sender = await test_message.default_sender(ctx, request.caller.account_id)
    if sender is None:
        raise errors.Conflict("from: no domain of this account may send yet; add one, and prove it where that is asked")
    accepted = await test_message.send_test(ctx, request.caller, sender=sender, to=body.to, request_id=request.id)
    return routing.Response(202, accepted.response)


ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="POST",
        path="/v1/test-email",
        handler=send,
        summary="Send a test email",
        description="A message with fixed words, and the source `test`. It goes the way of all mail and costs a credit "
        "like any other.",
        tag="Messages",
        permission=caller.Permission.SEND,
        body=TestEmail,
        body_rules={"examples": [{"to": "ada@example.net"}]},
        responses={202: receipt.Receipt},
        errors=(
            errors.InsufficientCredits,
            errors.Forbidden,
            errors.AccountSuspended,
            errors.Conflict,
            errors.RateLimited,
            errors.WarmupLimited,
            errors.ServiceUnavailable,
            errors.TemporaryFailure,
        ),
    ),
)
