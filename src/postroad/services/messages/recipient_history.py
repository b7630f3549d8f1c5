"""What an account has sent to one address: its latest messages with their results, and whether it is suppressed.

Bounded by the index of recipients, however much was sent: the counts are those of the messages that are listed.
"""

import collections
import contextlib
from collections.abc import Mapping
from typing import Final

import msgspec

from postroad import errors
from postroad.protocol import address
from postroad.services import context
from postroad.storage import recipients, store, suppressions

# What a person reads through; the search has the rest.
MAX_MESSAGES: Final = 100


class History(msgspec.Struct, frozen=True):
    """Messages to an address, newest first; `has_more` when there are older ones."""

    email_key: str
    sent: list[recipients.Sent]
    has_more: bool
    first_at: int | None
    suppression: suppressions.Suppression | None

    @property
    def counts(self) -> Mapping[str, int]:
        """How many of the listed messages have each status, most first."""
        return dict(collections.Counter(one.status for one in self.sent).most_common())


async def of_address(ctx: context.Context, account_id: str, email: str) -> History:
    """The history of an address in any spelling. NotFound when it has neither messages nor a suppression."""
    key = ""
    with contextlib.suppress(address.AddressError):
        key = address.parse(email).key
    async with ctx.store.scanning(account_id) as tx:
        history = await _read(tx, account_id, key) if key else None
    if history is None or not (history.sent or history.suppression):
        raise errors.NotFound("this account has sent nothing to this address")
    return history


async def _read(tx: store.Transaction, account_id: str, key: str) -> History:
    sent = await recipients.of_address(tx, account_id, key, limit=MAX_MESSAGES + 1)
    suppressed = await suppressions.find(tx, [(account_id, key)])
    has_more = len(sent) > MAX_MESSAGES
    first_at = await recipients.first_sent_at(tx, account_id, key) if has_more else None
    if sent and not has_more:
        first_at = sent[-1].created_at
    return History(key, sent[:MAX_MESSAGES], has_more, first_at, suppressed.get((account_id, key)))
