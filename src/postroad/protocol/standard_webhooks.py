"""The signature of the Standard Webhooks specification, which an endpoint can request beside our own.

Svix, where the specification comes from, has the same signature under names of its own, and so has Resend.

`webhook-signature` is `v1,<base64>`, an HMAC-SHA256 (RFC 2104) over `<id>.<timestamp>.<body>`; while an old secret is
valid there are several, separated by spaces. Its libraries decode what follows `whsec_` as base64 (RFC 4648 section 4),
and the bytes are the key. Our secrets are letters and digits, so they are base64 without padding.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "whsec_"
ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"


def svix_headers(secrets: Iterable[str], body: bytes, *, event_id: str, timestamp: int) -> list[tuple[str, str]]:
    """The headers of a request with the names of Svix."""
    signed = headers(secrets, body, event_id=event_id, timestamp=timestamp)
    return [(name.replace("webhook-", "svix-"), value) for name, value in signed]


def headers(secrets: Iterable[str], body: bytes, *, event_id: str, timestamp: int) -> tuple[tuple[str, str], ...]:
    """The headers of a request: one signature for each secret."""
    content = b"%b.%d.%b" % (event_id.encode(), timestamp, body)
    signatures = [base64.b64encode(hmac.digest(key(secret), content, hashlib.sha256)).decode() for secret in secrets]
    return (
        (ID_HEADER, event_id),
        (TIMESTAMP_HEADER, str(timestamp)),
        (SIGNATURE_HEADER, " ".join(f"v1,{signature}" for signature in signatures)),
    )


def key(secret: str) -> bytes:
    """The key that a library gets from a secret. Padding beyond what is needed is ignored."""
    return base64.b64decode(secret.removeprefix(PREFIX) + "==")
