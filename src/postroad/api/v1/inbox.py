"""`/v1/inbox`, in `postroad dev` only: messages received by the mailbox simulator, for automated tests.

The inbox belongs to the installation, not to an account: everybody who may read mail sees all of it.
"""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.messages import dev_inbox, previews
from postroad.services.people import authentication
from postroad.web import routing

RAW_TYPE: Final = "message/rfc822"
RESOURCE: Final = resource.Resource("Inbox", {"id": identifiers.pattern(dev_inbox.ID_PREFIX)})
# Events are a few kilobytes, and up to two megabytes with the text of a received mail.
WEBHOOK_BYTES: Final = 2 * 1024 * 1024
EnvelopeRecipient = Annotated[
    str,
    msgspec.Meta(
        description="Only messages to this envelope recipient, case-insensitive.", min_length=1, max_length=320
    ),
]


class InboxQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Filters of the list."""

    to: EnvelopeRecipient | None = None


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message delivered to the simulator; `size` is in octets."""

    id: str
    received_at: times.WireTime
    envelope_from: str
    envelope_to: tuple[str, ...]
    subject: str
    size: int


class InboxResponse(resource.Response, frozen=True):
    """Messages, newest first."""

    messages: list[InboxMessage]


def _require_of_users(who: callers.Caller, permission: callers.Permission) -> None:
    """Refuse users whose role does not permit it; credentials of programs that can read mail may read and empty it."""
    if who.scheme is callers.Scheme.TOKEN:
        authentication.require(who, permission)


def routes(mail: dev_inbox.Inbox) -> tuple[routing.Route[context.Context], ...]:
    """The routes of an inbox."""

    async def index(_ctx: context.Context, request: routing.Request) -> routing.Response:
        """List messages received by the mailbox simulator.

        In `postroad dev` only. The newest 500 messages of all accounts, newest first.
        """
        _require_of_users(request.caller, callers.Permission.CONTENT)
        query: InboxQuery = request.query
        found = mail.newest_first(to=query.to)
        shown = [resource.from_record(InboxMessage, received, size=len(received.content)) for received in found]
        return routing.Response(200, InboxResponse(shown, request_id=request.id))

    async def show_raw(ctx: context.Context, request: routing.Request) -> routing.Response:
        """Download a received message unchanged.

        As the simulator received it, with all headers.
        """
        _require_of_users(request.caller, callers.Permission.CONTENT)
        received = mail.find(request.path["id"])

        async def read() -> previews.Download:
            return previews.Download(f"{received.id}.eml", RAW_TYPE, received.content)

        begun = await previews.begin_download(ctx, request.caller.account_id, read)
        return routing.attachment(begun.filename, begun.body, content_type=RAW_TYPE, length=begun.size)

    async def take_webhook(_ctx: context.Context, _request: routing.Request) -> routing.Response:
        """Accept a webhook event and discard it.

        In `postroad dev` only. A webhook endpoint for testing; see the delivery log for what it was sent.
        """
        return routing.Response(204)

    async def clear(_ctx: context.Context, request: routing.Request) -> routing.Response:
        """Empty the inbox.

        Removes every message that the simulator has received.
        """
        _require_of_users(request.caller, callers.Permission.CHANGE)
        mail.clear()
        return routing.Response(204)

    return (
        RESOURCE.route(
            "GET /v1/inbox", index, permission=callers.Permission.READ, query=InboxQuery, responses={200: InboxResponse}
        ),
        RESOURCE.download(
            "GET /v1/inbox/{id}/raw",
            show_raw,
            content_type=RAW_TYPE,
            permission=callers.Permission.READ,
            errors=(errors.RateLimited,),
        ),
        RESOURCE.route("DELETE /v1/inbox", clear, permission=callers.Permission.READ, responses={204: None}),
        RESOURCE.route(
            f"POST {dev_inbox.WEBHOOK_PATH}",
            take_webhook,
            permission=None,
            body=bytes,
            body_limit=WEBHOOK_BYTES,
            responses={204: None},
        ),
    )
