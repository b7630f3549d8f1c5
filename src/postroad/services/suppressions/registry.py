"""The list of addresses that an account's mail is not sent to, for those who look after it.

Refusals put addresses onto it (`outcomes.py`, `late_bounces.py`). People take one off when its mailbox is back, and put
one on that shall get nothing. Every claim looks at the list, so a change counts from the next attempt on.
"""

from typing import Final

from postroad import errors
from postroad.model import labels
from postroad.protocol import address
from postroad.services import audit_log, context
from postroad.storage import suppressions

# A sentence; senders read it in the response of the recipient.
REASON_CHARACTERS: Final = 200


async def page(
    ctx: context.Context, account_id: str, *, after: str, limit: int, source: str | None = None
) -> list[suppressions.Suppression]:
    """A part of the list in the order of the addresses, behind one of them; the first begins behind nothing."""
    async with ctx.store.scanning() as tx:
        return await suppressions.of_account(tx, account_id, after=after, limit=limit, source=source)


async def find(ctx: context.Context, account_id: str, email: str) -> suppressions.Suppression:
    """One address of the list, however it is written."""
    place = (account_id, _known_key(email))
    async with ctx.store.reading() as tx:
        found = await suppressions.find(tx, [place])
    if place not in found:
        raise _not_found()
    return found[place]


async def add(
    ctx: context.Context, account_id: str, email: str, *, reason: str, source: suppressions.Source
) -> tuple[suppressions.Suppression, bool]:
    """Put an address onto the list, and say whether it is new. One that was there stays, with its first reason."""
    labels.check("reason", reason, limit=REASON_CHARACTERS)
    place = (account_id, _key(email))
    wanted = suppressions.Suppression(*place, source, reason, None, None, ctx.clock())
    async with ctx.store.transaction() as tx:
        added = await suppressions.add(tx, [wanted])
        if added:
            await audit_log.write(ctx, tx, account_id, "suppression.added", place[1])
        return (await suppressions.find(tx, [place]))[place], bool(added)


async def remove(ctx: context.Context, account_id: str, email: str, *, is_operator: bool = False) -> str:
    """Take an address off the list; returns it as the list had it. A complaint is lifted by an operator only."""
    place = (account_id, _known_key(email))
    async with ctx.store.transaction() as tx:
        found = (await suppressions.find(tx, [place])).get(place)
        if found and found.source == suppressions.Source.COMPLAINT and not is_operator:
            raise errors.Conflict("email: its owner has complained about your mail; ask the operator to take it off")
        if not await suppressions.remove(tx, *place):
            raise _not_found()
        await audit_log.write(ctx, tx, account_id, "suppression.removed", place[1])
    return place[1]


def _key(email: str) -> str:
    try:
        return address.parse(email).key
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"email: {problem}") from None


def _known_key(email: str) -> str:
    """What is no address is on no list."""
    try:
        return address.parse(email).key
    except address.AddressError:
        raise _not_found() from None


def _not_found() -> errors.NotFound:
    return errors.NotFound("the address is not on the suppression list of this account")
