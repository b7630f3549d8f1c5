"""DKIM signatures as others make them, for tests of what is verified: any tags, any form, two keys."""

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa, utils

from postroad.protocol.dns import tag_lists
from postroad.protocol.signatures import dkim

DOMAIN: Final = "provider.example"
PREHASHED: Final = utils.Prehashed(hashes.SHA256())
RSA_KEY: Final = rsa.generate_private_key(65_537, 1024)  # noqa: S505 - the shortest that counts
ED25519_KEY: Final = ed25519.Ed25519PrivateKey.generate()
RECORD: Final = tag_lists.dkim_value(
    RSA_KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
)
TAGS: Final = {"v": "1", "a": "rsa-sha256", "c": "relaxed/relaxed", "d": DOMAIN, "s": "sel"}
NAMES: Final = "from:to:subject:date:content-type"


def record(algorithm: str) -> str:
    """The key record of an algorithm."""
    if algorithm == "rsa-sha256":
        return RECORD
    return f"v=DKIM1; k=ed25519; p={base64.b64encode(ED25519_KEY.public_key().public_bytes_raw()).decode()}"


def sign(
    content: bytes,
    *,
    tags: Mapping[str, str | None] | None = None,
    key: rsa.RSAPrivateKey | None = None,
    name: str = "DKIM-Signature",
) -> bytes:
    """The message with a signature; a tag that is None is left out."""
    wanted: dict[str, str | None] = {**TAGS, "h": NAMES, **(tags or {})}
    head_form, _, body_form = (wanted["c"] or "simple/simple").partition("/")
    head, _, body = content.partition(b"\r\n\r\n")
    wanted.setdefault("bh", base64.b64encode(hashlib.sha256(_body(body, body_form)).digest()).decode())
    listed = ";\r\n ".join(f"{name}={value}" for name, value in wanted.items() if value is not None and name != "b")
    field = f"{name}: {listed};\r\n b=".encode()
    fields: dict[bytes, bytes] = {}
    for whole in re.split(rb"\r\n(?![ \t])", head):
        fields[whole.partition(b":")[0].lower()] = whole
    covered = [fields.pop(name) for name in (wanted["h"] or "").encode().split(b":") if name in fields]
    data = b"".join(_field(one, head_form) for one in covered) + _field(field, head_form).removesuffix(b"\r\n")
    digest = hashlib.sha256(data).digest()
    if wanted["a"] == "ed25519-sha256":
        value = ED25519_KEY.sign(digest)
    else:
        value = (key or RSA_KEY).sign(digest, padding.PKCS1v15(), PREHASHED)
    return field + (wanted.get("b") or base64.b64encode(value).decode()).encode() + b"\r\n" + content


def _field(field: bytes, form: str) -> bytes:
    return dkim.relaxed_head(field)[0][1] if form == "relaxed" else field + b"\r\n"


def _body(body: bytes, form: str) -> bytes:
    if form == "relaxed":
        return dkim.relaxed_body(body)
    while body.endswith(b"\r\n"):
        body = body[:-2]
    return body + b"\r\n"
