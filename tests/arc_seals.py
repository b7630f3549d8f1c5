"""ARC sets as others add them (RFC 8617), for tests of what is verified: results, a message signature and a seal."""

import base64
import hashlib
from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric import padding

from postroad.protocol.signatures import dkim
from tests import dkim_signatures

NAMES = (b"arc-authentication-results", b"arc-message-signature", b"arc-seal")
RESULTS = "mx.example; dkim=pass header.d=provider.example"


def seal(content: bytes, *, number: int = 1, tags: Mapping[str, str] | None = None) -> bytes:
    """The message with one more set, as the host makes it that gets `number - 1` of them. `tags` are of the seal."""
    signed = dkim_signatures.sign(
        content,
        tags={"v": None, "i": str(number), "h": "from:to:subject:date"},
        name="ARC-Message-Signature",
    )
    content = f"ARC-Authentication-Results: i={number}; {RESULTS}\r\n".encode() + signed
    fields = dkim.relaxed_head(content.partition(b"\r\n\r\n")[0])
    covered = b""
    # The newest is at the top.
    columns = [[field for key, field in fields if key == name][::-1] for name in NAMES]
    for each in range(number):
        covered += b"".join(column[each] for column in columns if each < len(column))
    wanted = {"i": str(number), "a": "rsa-sha256", "cv": "none" if number == 1 else "pass", **(tags or {})}
    wanted = {**wanted, "d": wanted.get("d", dkim_signatures.DOMAIN), "s": wanted.get("s", "sel")}
    field = f"ARC-Seal: {'; '.join(f'{key}={value}' for key, value in wanted.items())}; b=".encode()
    digest = hashlib.sha256(covered + dkim.relaxed_head(field)[0][1].removesuffix(b"\r\n")).digest()
    value = dkim_signatures.RSA_KEY.sign(digest, padding.PKCS1v15(), dkim_signatures.PREHASHED)
    return field + base64.b64encode(value) + b"\r\n" + content


def chain(content: bytes, *, sets: int) -> bytes:
    """The message after as many hosts."""
    for number in range(1, sets + 1):
        content = seal(content, number=number)
    return content
