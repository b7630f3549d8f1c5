"""Webhooks: whether a request comes from Postroad, and just now; and the event that it brings."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Iterable

from postroad_client import answers, errors


def verify(raw_body: bytes, header: str | None, secret: str, tolerance: float = 300, now: float | None = None) -> bool:
    """Whether the request was signed with the secret, at most `tolerance` seconds from now.

    `raw_body` is the body as it came, byte for byte: JSON that was parsed and written again has another signature.
    `header` is the value of `Service-Signature`. `now` takes the place of the clock, in tests.
    """
    parts = [part.partition("=") for part in (header or "").split(",")]
    times = [value for name, _, value in parts if name == "t"]
    signatures = [value for name, _, value in parts if name == "v1" and re.fullmatch("[0-9a-f]{64}", value)]
    if not secret or len(times) != 1 or not re.fullmatch("[0-9]{1,15}", times[0]):
        return False
    if abs((int(time.time()) if now is None else now) - int(times[0])) > tolerance:
        return False
    mac = hmac.new(secret.encode(), f"{times[0]}.".encode(), hashlib.sha256)
    mac.update(raw_body)
    expected = mac.hexdigest()
    return any(hmac.compare_digest(expected, signature) for signature in signatures)


def parse_event(
    raw_body: bytes,
    header: str | None,
    secret: str | Iterable[str],
    tolerance: float = 300,
    now: float | None = None,
) -> answers.Event:
    """The event of a request that was signed with the secret, or with one of several; otherwise as `verify`.

    Raises a SignatureVerificationError for a request that is not to be trusted, and a ValueError for a body that was
    signed and is no event.
    """
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not any(verify(raw_body, header, each, tolerance, now) for each in secrets):
        raise errors.SignatureVerificationError(
            f"{errors.INVALID_SIGNATURE}: the signature is of another secret or body, or too old",
            code=errors.INVALID_SIGNATURE,
        )
    try:
        members = json.loads(raw_body.decode())
    except RecursionError:
        members = None
    if not isinstance(members, dict):
        raise ValueError("the body is no event: not a JSON object")  # noqa: TRY004 - its bytes have the right type
    return answers.event(members)
