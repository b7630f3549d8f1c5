"""Links to the files of received mail, and to all of it: signed, for one of them, until a time.

An event has them instead of the files, so whoever is told of the mail can fetch them without an API key.
"""

from typing import Final

import msgspec

from postroad import config, context
from postroad.model.units import times
from postroad.services.people import tokens

# As long as the webhook log keeps the event.
LIFETIME: Final = 7 * times.DAY
PATH: Final = "/v1/inbound/attachments/"
# In place of the index of a file.
WHOLE: Final = -1
_PURPOSE: Final = "inbound attachment"


class Link(msgspec.Struct, frozen=True, array_like=True):
    """Which file of which mail, and until when (microseconds)."""

    account_id: str
    received_id: str
    index: int
    expires_at: int


def make(ctx: context.Context, account_id: str, received_id: str, *, index: int, expires_at: int) -> str:
    """The URL of a file."""
    token = tokens.write_value(ctx, Link(account_id, received_id, index, expires_at), purpose=_PURPOSE)
    return f"{config.base_url(ctx.settings)}{PATH}{token}"


def read(ctx: context.Context, token: str) -> Link | None:
    """What a token of a URL names; None if it is not ours, or too old."""
    link = tokens.read_value(ctx, token, Link, purpose=_PURPOSE)
    return link if link is not None and ctx.clock() < link.expires_at else None
