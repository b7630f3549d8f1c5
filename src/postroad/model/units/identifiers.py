"""Opaque ids: a prefix for the kind, then 28 hexadecimal digits that sort by time.

Fourteen digits are microseconds since 1970 (enough until the year 4253), fourteen are random (56 bits). Ids made in the
same microsecond on many hosts still differ, and a list in id order is a list in time order, so a cursor is just an id.
"""

import re
from typing import Final

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


def make_series(prefix: str, *, now: int, entropy: bytes) -> tuple[str, ...]:
    """As many ids as there are random bytes for, one microsecond apart: they sort in this order."""
    places = range(0, len(entropy), ENTROPY_BYTES)
    parts = (entropy[place : place + ENTROPY_BYTES] for place in places)
    return tuple(make(prefix, now=now + index, entropy=part) for index, part in enumerate(parts))


def is_identifier(text: str, prefix: str) -> bool:
    """Whether the text could be an id of this kind; a cheap check before asking the database."""
    return text.startswith(prefix) and _SHAPE.fullmatch(text) is not None
