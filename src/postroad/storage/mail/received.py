"""Mail that comes in: the routes that take it, what they stored, and the counts for their quotas.

A mail and its content are rows of their own, so that lists read no content. Content is deleted first, when it expires
(`storage/operations/retention.py`); the row then says what there was.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad.storage.engine import queries, store
from postroad.storage.mail import domains

# As many as one query finds.
MAX_KEYS: Final = 3
# The network of the sum over all of them.
ALL_NETWORKS: Final = ""


class Action(StrEnum):
    """What a route does with mail."""

    STORE = "store"
    FORWARD = "forward"
    DROP = "drop"


class Route(msgspec.Struct, frozen=True):
    """A row of `inbound_routes`: an account takes the mail to `match_key`, which is below one of its sender domains."""

    id: str
    account_id: str
    domain_id: str
    match_key: str
    action: str
    forward_to: str | None
    created_at: int


class Match(msgspec.Struct, frozen=True):
    """A route that takes mail; an account that is suspended or closed receives none."""

    route: Route
    is_active: bool


async def insert_route(tx: store.Transaction, route: Route) -> bool:
    """Store a route; False when another one has its addresses. One that takes no mail any more gives way."""
    await tx.execute("inbound_routes.remove_lapsed", route.match_key, route.account_id, route.domain_id)
    return await tx.execute("inbound_routes.insert", *msgspec.structs.astuple(route)) == 1


@queries.changed("inbound_routes.remove")
async def remove_route(tx: store.Transaction, account_id: str, route_id: str) -> bool: ...
@queries.row("inbound_routes.by_id", Route)
async def route(tx: store.Transaction, account_id: str, route_id: str) -> Route | None: ...
@queries.rows("inbound_routes.of_account", Route)
async def routes(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[Route]: ...
@queries.count("inbound_routes.count")
async def count_routes(tx: store.Transaction, account_id: str) -> int: ...


async def matching(tx: store.Transaction, keys: Sequence[str]) -> Match | None:
    """The route with the first of up to MAX_KEYS keys that one has."""
    rows = await tx.fetch("inbound_routes.matching", *[*keys, *[keys[0]] * MAX_KEYS][:MAX_KEYS])
    by_key = {row[3]: row for row in rows}
    for *columns, is_active, domain in (by_key[key] for key in keys if key in by_key):
        route = Route(*columns)
        if await _is_of_nearest(tx, route, domain):
            return Match(route, is_active=bool(is_active))
    return None


async def _is_of_nearest(tx: store.Transaction, route: Route, domain: str) -> bool:
    """Whether no other account has verified a domain since that is nearer to the addresses than the route's."""
    above = route.match_key.rpartition("@")[2]
    while above and above != domain:
        owner = await domains.verified_owner(tx, above)
        if owner is not None:
            return owner == route.account_id
        above = above.partition(".")[2]
    return True


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `received_messages`. `authentication` and `spam` are JSON; `email_id` is the message that it answers."""

    account_id: str
    id: str
    route_id: str
    recipient: str
    envelope_sender: str
    sender: str
    subject: str
    message_id_field: str | None
    email_id: str | None
    size: int
    attachment_count: int
    authentication: str
    spam: str | None
    client_address: str
    fingerprint: bytes
    has_body: bool = True
    received_at: int


def _received(*row: object) -> Received:
    values = dict(zip(Received.__struct_fields__, row, strict=True))
    fingerprint = bytes(values["fingerprint"])  # type: ignore[call-overload]
    return Received(**values | {"fingerprint": fingerprint, "has_body": bool(values["has_body"])})  # type: ignore[arg-type]


async def insert(tx: store.Transaction, received: Received, mime: bytes) -> bool:
    """Store a mail with its content; False when the account has it already."""
    row = msgspec.structs.astuple(msgspec.structs.replace(received, has_body=1))
    if await tx.execute("received_messages.insert", *row) == 0:
        return False
    await tx.execute("received_messages.insert_body", received.account_id, received.id, mime)
    return True


@queries.exists("received_messages.is_known")
async def is_known(tx: store.Transaction, account_id: str, fingerprint: bytes) -> bool: ...
@queries.row("received_messages.by_id", _received)
async def by_id(tx: store.Transaction, account_id: str, received_id: str) -> Received | None: ...
# The newest first, before the id `before`; `pattern` is one of LIKE for the sender or subject in lower case.
@queries.rows("received_messages.of_account", _received)
async def of_account(
    tx: store.Transaction,
    account_id: str,
    *,
    before: str,
    limit: int,
    route_id: str | None = None,
    pattern: str | None = None,
) -> list[Received]: ...
# The answers to a message of the account, oldest first.
@queries.rows("received_messages.of_email", _received)
async def of_email(tx: store.Transaction, account_id: str, email_id: str, *, limit: int) -> list[Received]: ...
# None when it has expired, or there is no such mail.
@queries.row("received_messages.body", bytes)
async def body(tx: store.Transaction, account_id: str, received_id: str) -> bytes | None: ...


async def remove(tx: store.Transaction, account_id: str, received_id: str) -> bool:
    """Delete a mail with its content; False when there is no such mail."""
    await tx.execute("received_messages.remove_body", account_id, received_id)
    return await tx.execute("received_messages.remove", account_id, received_id) == 1


class Count(msgspec.Struct, frozen=True):
    """How much mail an account has received on a day, from one network or from all."""

    messages: int = 0
    bytes: int = 0


@queries.row("received_counts.add", Count)
async def _add(tx: store.Transaction, account_id: str, day: int, network: str, size: int) -> Count | None: ...
@queries.row("received_counts.of_day", Count)
async def _of_day(tx: store.Transaction, account_id: str, day: int, network: str) -> Count | None: ...
@queries.changes("received_counts.sweep")
async def sweep_counts(tx: store.Transaction, *, until_day: int, limit: int = store.SWEEP_ROWS) -> int: ...


async def add_count(tx: store.Transaction, account_id: str, day: int, network: str, size: int) -> Count:
    """Count a mail; returns the counts with it. ALL_NETWORKS comes first: it is the lock of the account's day."""
    return await _add(tx, account_id, day, network, size) or Count()


async def count_of_day(tx: store.Transaction, account_id: str, day: int, network: str = ALL_NETWORKS) -> Count:
    """What an account has received on a UTC day."""
    return await _of_day(tx, account_id, day, network) or Count()
