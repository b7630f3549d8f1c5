"""`/v1/test-email`: send a fixed test message."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.mail import send_request
from postroad.services.messages import sample_send
from postroad.web import routing

RESOURCE: Final = resource.Resource("Messages")
Sender = Annotated[
    send_request.Address,
    msgspec.Meta(description="An address at a domain of the account; by default `hello@` the first domain."),
]


class TestEmail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The recipient of the test message, and optionally its sender."""

    to: Annotated[send_request.Address, msgspec.Meta(description="The recipient, ideally your own address.")]
    sender: Sender | None = msgspec.field(name="from", default=None)


async def send(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a test email.

    Sends a fixed message with the source `test`. It is delivered and charged like any other message.
    """
    body: TestEmail = request.body
    sender = body.sender
    if sender is None:
        sender = await sample_send.default_sender(ctx, request.caller.account_id)
    if sender is None:
        raise errors.Conflict("from: no domain of this account can send yet; add a domain and verify it")
    accepted = await sample_send.send(ctx, request.caller, sender=sender, to=body.to, request_id=request.id)
    return routing.Response(202, accepted.response)


ROUTES: Final = (
    RESOURCE.route(
        "POST /v1/test-email",
        send,
        body=TestEmail,
        body_rules={"examples": [{"to": "ada@example.net"}]},
        responses={202: send_request.Receipt},
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
