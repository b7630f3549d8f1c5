"""`/v1/inbox`, in `postroad dev` only: messages received by the mailbox simulator, for automated tests.

The inbox belongs to the installation, not to an account: everybody who may read mail sees all of it.
"""

from typing import Annotated, Final

import msgspec

from postroad import errors
from postroad.model import caller, identifiers, times
from postroad.services import context
from postroad.services.auth import authentication
from postroad.services.messages import dev_inbox, downloads, previews
from postroad.web import routing

RAW_TYPE: Final = "message/rfc822"
PATH_PATTERNS: Final = {"id": identifiers.pattern(dev_inbox.ID_PREFIX)}
TAG: Final = "Inbox"
# Events are a few kilobytes.
WEBHOOK_BYTES: Final = 64 * 1024


class InboxQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Filters of the list."""

    to: (
        Annotated[
            str,
            msgspec.Meta(
                description="Only messages to this envelope recipient, case-insensitive.", min_length=1, max_length=320
            ),
        ]
        | None
    ) = None


class InboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message delivered to the simulator; `size` is in octets."""

    id: str
    received_at: times.WireTime
    envelope_from: str
    envelope_to: tuple[str, ...]
    subject: str
    size: int


class InboxResponse(msgspec.Struct, frozen=True):
    """Messages, newest first."""

    messages: list[InboxMessage]
    request_id: str


def _shown(received: dev_inbox.CapturedMessage) -> InboxMessage:
    return InboxMessage(
        id=received.id,
        received_at=times.to_wire(received.received_at),
        envelope_from=received.envelope_from,
        envelope_to=received.envelope_to,
        subject=received.subject,
        size=len(received.content),
    )


def routes(mail: dev_inbox.Inbox) -> tuple[routing.Route[context.Context], ...]:
    """The routes of an inbox."""

    async def index(_ctx: context.Context, request: routing.Request) -> routing.Response:
        query: InboxQuery = request.query
        shown = [_shown(received) for received in mail.newest_first(to=query.to)]
        return routing.Response(200, InboxResponse(shown, request.id))

    async def show_raw(ctx: context.Context, request: routing.Request) -> routing.Response:
        received = mail.find(request.path["id"])

        async def read() -> previews.Download:
            return previews.Download(f"{received.id}.eml", RAW_TYPE, received.content)

        begun = await downloads.begin(ctx, request.caller.account_id, read)
        disposition = ("Content-Disposition", f'attachment; filename="{begun.filename}"')
        return routing.Response(200, begun.body, headers=(disposition,), content_type=RAW_TYPE, length=begun.size)

    async def take_webhook(_ctx: context.Context, _request: routing.Request) -> routing.Response:
        return routing.Response(204)

    async def clear(_ctx: context.Context, request: routing.Request) -> routing.Response:
        if request.caller.scheme is caller.Scheme.TOKEN:
            # Users need the role; API credentials that can read the inbox may also empty it.
            authentication.require(request.caller, caller.Permission.CHANGE)
        mail.clear()
        return routing.Response(204)

    return (
        routing.Route(
            method="GET",
            path="/v1/inbox",
            handler=index,
            summary="List messages received by the mailbox simulator",
            description="In `postroad dev` only. The newest 500 messages of all accounts, newest first.",
            tag=TAG,
            permission=caller.Permission.READ,
            query=InboxQuery,
            responses={200: InboxResponse},
        ),
        routing.Route(
            method="GET",
            path="/v1/inbox/{id}/raw",
            handler=show_raw,
            summary="Download a received message unchanged",
            tag=TAG,
            permission=caller.Permission.READ,
            responses={200: bytes},
            errors=(errors.RateLimited,),
            content_type=RAW_TYPE,
            response_headers={"Content-Disposition": "Always `attachment`."},
            path_patterns=PATH_PATTERNS,
        ),
        routing.Route(
            method="DELETE",
            path="/v1/inbox",
            handler=clear,
            summary="Empty the inbox",
            tag=TAG,
            permission=caller.Permission.READ,
            responses={204: None},
        ),
        routing.Route(
            method="POST",
            path=dev_inbox.WEBHOOK_PATH,
            handler=take_webhook,
            summary="Accept a webhook event and discard it",
            description="In `postroad dev` only. A webhook endpoint for testing; see the delivery log "
            "for what it was sent.",
            tag=TAG,
            permission=None,
            body=bytes,
            body_limit=WEBHOOK_BYTES,
            responses={204: None},
        ),
    )
