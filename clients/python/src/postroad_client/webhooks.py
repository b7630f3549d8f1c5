"""Webhook signatures: whether a request comes from Postroad, and just now."""

import hashlib
import hmac
import re
import time


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
