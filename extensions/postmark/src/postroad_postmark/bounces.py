"""`/bounces` and `/deliverystats`: recipients that ended as bounced.

The number of a bounce is the time in its recipient's id, in microseconds, by which its message is found again. In a
batch, two recipients can have the same number; such a number names none of them.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.events import events
from postroad.model.mail import limits, send_request, statuses
from postroad.model.people import callers
from postroad.model.units import chart_ranges, identifiers, times
from postroad.services.accounts import statistics
from postroad.services.messages import lookup
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import attempts, messages
from postroad.web import routing
from postroad_postmark import days, error_shape, event_format, long_lists, schemas

_NUMBER_DIGITS: Final = 16
# Messages whose recipients are read at once.
_PART: Final = 100


class BouncesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of the list."""

    count: schemas.Count | None = None
    offset: schemas.Offset | None = None
    type: str | None = None
    inactive: bool | None = None
    email_filter: str | None = msgspec.field(name="emailFilter", default=None)
    tag: str | None = None
    message_id: str | None = msgspec.field(name="messageID", default=None)
    fromdate: str | None = None
    todate: str | None = None
    messagestream: str | None = None


Bounced = tuple[messages.Message, messages.Recipient]


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List bounces, newest message first."""
    query: BouncesQuery = request.query
    count, offset = query.count or 100, query.offset or 0
    account_id = request.caller.account_id
    with long_lists.reading(ctx, account_id, rows=offset + count + 1):
        found = await _search(ctx, request, query, limit=offset + count + 1)
        if query.inactive is not None:
            suppressed = await suppressions.listed(ctx, account_id, [person.email for _, person in found])
            found = [pair for pair in found if (pair[1].email in suppressed) == query.inactive]
        if query.type:
            types = await _types(ctx, account_id, found)
            found = [pair for pair in found if types[pair[1].id].name == query.type]
    shown = await _shown(ctx, account_id, found[offset : offset + count])
    return extension_api.respond({"TotalCount": len(found), "Bounces": shown})


async def _search(ctx: context.Context, request: routing.Request, query: BouncesQuery, *, limit: int) -> list[Bounced]:
    """The bounced recipients of messages that failed in whole or in part."""
    account_id, wanted = request.caller.account_id, (query.email_filter or "").lower()
    mode = None if query.message_id else statuses.Mode.LIVE
    found: list[messages.Message] = []
    for status in (statuses.MessageStatus.FAILED, statuses.MessageStatus.PARTIAL):
        filters = lookup.Filters(
            status=status,
            recipient=query.email_filter or None,
            tag=query.tag or None,
            message_id=_message_id(query.message_id),
            metadata=f"{event_format.STREAM}:{query.messagestream}" if query.messagestream else None,
            after=days.begin("fromdate", query.fromdate or None),
            before=days.end("todate", query.todate or None),
            mode=statuses.Mode.TEST if request.caller.is_test else mode,
        )
        found += (await lookup.page(ctx, account_id, filters, limit=limit, cursor=None)).messages
    newest = sorted(found, key=lambda message: message.id, reverse=True)[:limit]
    bounced: list[Bounced] = []
    # A message has up to 50 recipients, so no more are read than are wanted.
    for start in range(0, len(newest), _PART):
        part = newest[start : start + _PART]
        people = await lookup.recipients_of(ctx, account_id, part)
        bounced += [
            (message, person)
            for message in part
            for person in people[message.id]
            if person.status in statuses.FAILURES and wanted in ("", person.email.lower())
        ]
        if len(bounced) >= limit:
            break
    return bounced[:limit]


def _message_id(given: str | None) -> str | None:
    if given and not identifiers.is_identifier(given, identifiers.MESSAGE):
        raise error_shape.MessageNotFound("messageID: no such message in this account")
    return given or None


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """One bounce."""
    return extension_api.respond(await _found(ctx, request))


async def dump(ctx: context.Context, request: routing.Request) -> routing.Response:
    """What the receiving server replied."""
    return extension_api.respond({"Body": (await _found(ctx, request))["Details"]})


async def activate(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove the address of a bounce from the suppression list."""
    bounce = await _found(ctx, request)
    # An address that is not suppressed is active already.
    with contextlib.suppress(errors.NotFound):
        await suppressions.remove(ctx, request.caller.account_id, bounce["Email"])
    return extension_api.respond({"Message": "OK", "Bounce": bounce | {"Inactive": False, "CanActivate": False}})


async def _found(ctx: context.Context, request: routing.Request) -> dict[str, Any]:
    account_id, number = request.caller.account_id, request.path["id"]
    if not (number.isascii() and number.isdigit() and len(number) <= _NUMBER_DIGITS):
        raise _not_found()
    time = int(number)
    # A recipient's id is at most as many microseconds later than its message's as a message has recipients.
    filters = lookup.Filters(
        after=max(0, time - limits.UNIQUE_RECIPIENTS),
        before=time + 1,
        mode=statuses.Mode.TEST if request.caller.is_test else statuses.Mode.LIVE,
    )
    near = (await lookup.page(ctx, account_id, filters, limit=schemas.MAX_BATCH, cursor=None)).messages
    people = await lookup.recipients_of(ctx, account_id, near)
    found = [(message, person) for message in near for person in people[message.id] if _number(person) == time]
    found = [(message, person) for message, person in found if person.status in statuses.FAILURES]
    if len(found) != 1:
        raise _not_found()
    return (await _shown(ctx, account_id, found))[0]


async def _shown(ctx: context.Context, account_id: str, found: Sequence[Bounced]) -> list[dict[str, Any]]:
    receipts = await lookup.receipts(ctx, account_id, list({message.id: message for message, _ in found}.values()))
    suppressed = await suppressions.listed(ctx, account_id, [person.email for _, person in found])
    types = await _types(ctx, account_id, found)
    return [
        _bounce(message, person, receipts[message.id], types[person.id], is_inactive=person.email in suppressed)
        for message, person in found
    ]


async def _types(ctx: context.Context, account_id: str, found: Sequence[Bounced]) -> dict[str, event_format.BounceType]:
    """The type of each bounce by recipient id: the cause of its last attempt, as in the webhooks."""
    async with ctx.store.scanning(account_id) as tx:
        tried = {
            message_id: await attempts.of_message(tx, account_id, message_id)
            for message_id in dict.fromkeys(message.id for message, _ in found)
        }
    return {person.id: event_format.bounce_type(_cause(person, tried[message.id])) for message, person in found}


def _cause(person: messages.Recipient, tried: Sequence[attempts.Attempt]) -> str:
    """Why it bounced. Without an attempt, it was not to get the mail, or the time was over before the first."""
    last = _last(person, tried)
    if last is not None:
        return last.reason
    return person.cause or events.SUPPRESSED_CAUSE if person.status == statuses.RecipientStatus.BOUNCED else ""


def _last(person: messages.Recipient, tried: Sequence[attempts.Attempt]) -> attempts.Attempt | None:
    return max(
        (each for each in tried if each.recipient_id == person.id), key=lambda each: each.started_at, default=None
    )


def _bounce(
    message: messages.Message,
    person: messages.Recipient,
    given: send_request.Receipt,
    bounce: event_format.BounceType,
    *,
    is_inactive: bool,
) -> dict[str, Any]:
    stream, metadata = event_format.stream_of(given.metadata or {})
    return {
        "RecordType": "Bounce",
        "ID": _number(person),
        "Type": bounce.name,
        "TypeCode": bounce.code,
        "Name": bounce.title,
        "Tag": given.tags[0] if given.tags else "",
        "MessageID": message.id,
        "MessageStream": stream,
        "Metadata": metadata,
        "ServerID": 0,
        "Description": bounce.description,
        "Details": _reply(person),
        "Email": person.email,
        "From": message.sender,
        "BouncedAt": times.to_wire(person.bounced_at or message.created_at),
        "DumpAvailable": True,
        "Inactive": is_inactive,
        "CanActivate": is_inactive,
        "Subject": message.subject,
    }


def event(person: messages.Recipient, tried: Sequence[attempts.Attempt]) -> dict[str, Any] | None:
    """What happened to a recipient, as one of the events of a message; None before anything has."""
    last = _last(person, tried)
    at = person.delivered_at or person.bounced_at or (last.started_at if last else None)
    if at is None:
        return None
    server = {"DestinationServer": last.host, "DestinationIP": last.address} if last else {}
    kind, details = "Transient", {"DeliveryMessage": _reply(person), **server}
    if person.status == statuses.RecipientStatus.DELIVERED:
        kind = "Delivered"
    elif person.status in statuses.FAILURES:
        kind, details = "Bounced", {"Summary": _reply(person), "BounceID": str(_number(person))}
    return {"Recipient": person.email, "Type": kind, "ReceivedAt": times.to_wire(at), "Details": details}


def _number(person: messages.Recipient) -> int:
    return event_format.bounce_id(person.id)


def _reply(person: messages.Recipient) -> str:
    return f"{person.last_smtp_code or ''} {person.last_smtp_response or ''}".strip()


async def delivery_statistics(ctx: context.Context, request: routing.Request) -> routing.Response:
    """How many addresses are inactive, and how many recipients bounced in the last 30 days."""
    account_id = request.caller.account_id
    month = chart_ranges.of_period(chart_ranges.Period.MONTH, now=ctx.clock())
    overview = await statistics.overview(ctx, account_id, month)
    inactive = await suppressions.count(ctx, account_id)
    counts = [{"Name": "All", "Count": overview.totals.bounced}]
    return extension_api.respond({"InactiveMails": inactive, "Bounces": counts})


def _not_found() -> error_shape.BounceNotFound:
    return error_shape.BounceNotFound("no such bounce in this account")


ROUTES: Final = (
    extension_api.route(
        "GET /bounces", index, query=BouncesQuery, permission=callers.Permission.CONTENT, scope=callers.Scope.READ
    ),
    extension_api.route("GET /bounces/{id}", show, permission=callers.Permission.CONTENT, scope=callers.Scope.READ),
    extension_api.route(
        "GET /bounces/{id}/dump", dump, permission=callers.Permission.CONTENT, scope=callers.Scope.READ
    ),
    extension_api.route("PUT /bounces/{id}/activate", activate, scope=callers.Scope.SUPPRESSIONS),
    extension_api.route("GET /deliverystats", delivery_statistics, scope=callers.Scope.STATISTICS),
    extension_api.route("GET /deliveryStats", delivery_statistics, scope=callers.Scope.STATISTICS),
)
