"""Opaque ids: a prefix for the kind, then 28 hexadecimal digits that sort by time.

Fourteen digits are microseconds since 1970 (enough until the year 4253), fourteen are random (56 bits). Ids made in the
same microsecond on many hosts still differ, and a list in id order is a list in time order, so a cursor is just an id.
"""

import re
from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from postroad import errors

MESSAGE: Final = "em_"
RECIPIENT: Final = "rcp_"
REQUEST: Final = "req_"
ACCOUNT: Final = "acc_"
USER: Final = "usr_"
LOGIN: Final = "lgn_"
CREDENTIAL: Final = "cred_"
API_KEY: Final = "key_"
DOMAIN: Final = "dom_"
TEMPLATE: Final = "tpl_"
LEDGER: Final = "led_"
EVENT: Final = "evt_"
WEBHOOK: Final = "whk_"
WEBHOOK_DELIVERY: Final = "whd_"
AUDIT_ENTRY: Final = "aud_"
APPROVAL: Final = "apr_"
NOTICE: Final = "ntc_"
SAVED_VIEW: Final = "view_"
JOB: Final = "job_"
INBOUND_ROUTE: Final = "rt_"
RECEIVED: Final = "in_"
PASSKEY: Final = "psk_"
TOKEN: Final = "tok_"  # noqa: S105 - a prefix, not a secret

ENTROPY_BYTES: Final = 7
PATTERN: Final = r"[0-9a-f]{28}"
_SHAPE = re.compile(rf"[a-z]+_{PATTERN}")


def pattern(prefix: str) -> str:
    """The shape of an id of this kind, for a schema."""
    return f"^{prefix}{PATTERN}$"


def make(prefix: str, *, now: int, entropy: bytes) -> str:
    """An id from microseconds and seven random bytes."""
    return f"{prefix}{now:014x}{entropy.hex()}"


def make_together(prefixes: Sequence[str], *, series: str, now: int, entropy: bytes) -> list[str]:
    """An id of each kind, then a series of one kind, which sorts in this order; as many as there are bytes for."""
    size = 2 * ENTROPY_BYTES
    digits = entropy.hex()
    count = len(digits) // size - len(prefixes)
    ids = []
    for index, kind in enumerate(prefixes):
        ids.append(f"{kind}{now:014x}{digits[index * size : (index + 1) * size]}")
    for index in range(count):
        at = (len(prefixes) + index) * size
        ids.append(f"{series}{now + index:014x}{digits[at : at + size]}")
    return ids


def is_identifier(text: str, prefix: str) -> bool:
    """Whether the text could be an id of this kind; a cheap check before asking the database."""
    return text.startswith(prefix) and _SHAPE.fullmatch(text) is not None


# Cursors: positions in a list.
#
# Ids sort by time, so an id is a cursor, and so is a time. A foreign id used as a cursor is only a position in the
# caller's own list.
Row = TypeVar("Row")
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 25
# Sorts after every digit of an id.
_AFTER_ALL: Final = "~"
_TIME_DIGITS: Final = 14
# The last microsecond that an id can hold.
LAST: Final = 16**_TIME_DIGITS - 1


def at(prefix: str, microseconds: int) -> str:
    """The position before everything created at this time or later."""
    return f"{prefix}{min(microseconds, LAST):0{_TIME_DIGITS}x}"


def time_of(cursor: str, prefix: str) -> int:
    """The time of a cursor in microseconds: the argument of `at`, or when the id was created."""
    return int(cursor[len(prefix) : len(prefix) + _TIME_DIGITS], 16)


def end(prefix: str) -> str:
    """The position after everything."""
    return prefix + _AFTER_ALL


def after(cursor: str | None, prefix: str) -> str:
    """The position after which a page begins; empty for the first page."""
    return "" if cursor is None else check("cursor", cursor, prefix)


def before(cursor: str | None, prefix: str) -> str:
    """The position before which a page of the newest first begins; after everything for the first page."""
    return end(prefix) if cursor is None else check("before", cursor, prefix)


def next_cursor(ids: Sequence[str], *, limit: int) -> str | None:
    """The cursor of the next page when more than `limit` rows were found; else None."""
    return ids[limit - 1] if len(ids) > limit else None


class Page(NamedTuple, Generic[Row]):
    """Rows of a list, and the cursor to continue with, None at the end; there may be more although there are few."""

    rows: list[Row]
    next_cursor: str | None


def page(found: list[Row], *, limit: int, key: str = "id") -> Page[Row]:
    """The first `limit` rows; `key` is the attribute that is a row's position."""
    return Page(found[:limit], next_cursor([getattr(row, key) for row in found], limit=limit))


def check(field: str, text: str, prefix: str) -> str:
    """A cursor from a caller, checked."""
    if not is_identifier(text, prefix):
        raise errors.InvalidRequest(f"{field}: is not a cursor of this list; use the cursor of the previous page")
    return text
