"""The signature of a webhook: `t=<unix seconds>,v1=<hex>`, an HMAC-SHA256 (RFC 2104) over `<t>.<body>`.

The key is the whole secret as UTF-8, with its `whsec_`. While an old secret is valid there are several `v1`, and an
endpoint accepts any of them. The body is the bytes of the request: re-serialized JSON has another signature. The header
is parsed strictly: no spaces, no upper case, one `t`; unknown parts are ignored. The vectors in `clients/conformance`
specify the same for other languages.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Final

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
