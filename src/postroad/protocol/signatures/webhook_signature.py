"""Signatures of webhooks: our own, an HMAC-SHA256 over `<t>.<body>`, and that of Standard Webhooks."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

# The signature of the Standard Webhooks specification, which an endpoint can request beside our own.
#
# `webhook-signature` is `v1,<base64>`, an HMAC-SHA256 (RFC 2104) over `<id>.<timestamp>.<body>`; while an old secret is
# valid there are several, separated by spaces. Its libraries decode what follows `whsec_` as base64 (RFC 4648 section
# 4), and the bytes are the key. Our secrets are letters and digits, so they are base64 without padding.

STANDARD_PREFIX: Final = "whsec_"
STANDARD_ID_HEADER: Final = "webhook-id"
STANDARD_TIMESTAMP_HEADER: Final = "webhook-timestamp"
STANDARD_SIGNATURE_HEADER: Final = "webhook-signature"


def standard_headers(
    secrets: Iterable[str], body: bytes, *, event_id: str, timestamp: int
) -> tuple[tuple[str, str], ...]:
    """The headers of a request: one signature for each secret."""
    content = b"%b.%d.%b" % (event_id.encode(), timestamp, body)
    signatures = [
        base64.b64encode(hmac.digest(standard_key(secret), content, hashlib.sha256)).decode() for secret in secrets
    ]
    return (
        (STANDARD_ID_HEADER, event_id),
        (STANDARD_TIMESTAMP_HEADER, str(timestamp)),
        (STANDARD_SIGNATURE_HEADER, " ".join(f"v1,{signature}" for signature in signatures)),
    )


def standard_key(secret: str) -> bytes:
    """The key that a library gets from a secret. Padding beyond what is needed is ignored."""
    return base64.b64decode(secret.removeprefix(STANDARD_PREFIX) + "==")


HEADER: Final = "Service-Signature"
TOLERANCE_SECONDS: Final = 300
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
# Ten digits last until the year 2286; more than fifteen are no time.
_SECONDS: Final = re.compile(r"[0-9]{1,15}")
# A header has one `t` and as many `v1` as secrets are good.
_MAX_PARTS: Final = 100


def header(secrets: Iterable[str], body: bytes, *, timestamp: int) -> str:
    """The header's value: one `v1` for each secret."""
    signatures = ",".join(f"v1={digest(secret, body, timestamp=timestamp)}" for secret in secrets)
    return f"t={timestamp},{signatures}"


def digest(secret: str, body: bytes, *, timestamp: int) -> str:
    """The signature of the body at a time, in hex."""
    return _digest(secret, str(timestamp), body)


def why_refused(value: str, body: bytes, *, secret: str, now: int, tolerance: int = TOLERANCE_SECONDS) -> str | None:
    """Why an endpoint with this secret must refuse the request; None when the signature is valid."""
    if not secret:
        return "the secret is empty"
    parts = [part.partition("=") for part in value.split(",", _MAX_PARTS)]
    times = [text for name, _, text in parts if name == "t"]
    signatures = [text for name, _, text in parts if name == "v1" and _DIGEST.fullmatch(text)]
    if len(times) != 1 or not _SECONDS.fullmatch(times[0]) or not signatures:
        return f"the {HEADER} header is not of the form t=<seconds>,v1=<hex>"
    # The time as it was sent: `01` and `1` are the same number, but not the same bytes.
    expected = _digest(secret, times[0], body)
    if not any(hmac.compare_digest(expected, signature) for signature in signatures):
        return "the signature does not match the secret and the body"
    distance = abs(now - int(times[0]))
    if distance > tolerance:
        return f"the request was signed {distance} seconds from now, more than {tolerance}"
    return None


def _digest(secret: str, seconds: str, body: bytes) -> str:
    return hmac.new(secret.encode(), b"%b.%b" % (seconds.encode(), body), hashlib.sha256).hexdigest()
