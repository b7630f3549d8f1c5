"""The list of addresses that an account's mail is not sent to, for those who look after it.

Refusals put addresses onto it (`outcomes.py`, `late_bounces.py`). People take one off when its mailbox is back, and put
one on that shall get nothing. Every claim looks at the list, so a change counts from the next attempt on.
"""

from typing import Final

from postroad import errors
from postroad.model import labels
from postroad.protocol import address
from postroad.services import context
from postroad.storage import suppressions

# A sentence; senders read it in the response of the recipient.
REASON_CHARACTERS: Final = 200


async def page(ctx: context.Context, account_id: str, after: str, limit: int) -> list[suppressions.Suppression]:
    """A part of the list in the order of the addresses, behind one of them; the first begins behind nothing."""
    async with ctx.store.reading() as tx:
        return await suppressions.of_account(tx, account_id, after=address.key_of(after), limit=limit)


async def add(ctx: context.Context, account_id: str, email: str, *, reason: str) -> suppressions.Suppression:
    """Put an address onto the list. One that is there already stays as it is, with its first reason."""
    labels.check("reason", reason, most=REASON_CHARACTERS)
    place = (account_id, _key(email))
    added = suppressions.Suppression(*place, suppressions.Source.OPERATOR, reason, None, ctx.clock())
    async with ctx.store.transaction() as tx:
        await suppressions.add(tx, [added])
        return (await suppressions.find(tx, [place]))[place]


async def remove(ctx: context.Context, account_id: str, email: str) -> str:
    """Take an address off the list; returns it as the list had it."""
    key = _key(email)
    async with ctx.store.transaction() as tx:
        if not await suppressions.remove(tx, account_id, key):
            raise errors.NotFound(f"{key} is not on the suppression list of the account")
    return key


def _key(email: str) -> str:
    try:
        return address.parse(email).key
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"email: {problem}") from None
