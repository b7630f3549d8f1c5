"""Header fields that an endpoint wants in every request, such as credentials: encrypted like its signing secret.

Only endpoints in the format of another service have them.
"""

import base64
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import errors
from postroad.services import context
from postroad.services.auth import encryption, sealed_values
from postroad.storage import webhooks

HeaderFields = Sequence[tuple[str, str]]

MAX_FIELDS: Final = 20
MAX_CHARACTERS: Final = 1024
# RFC 9110 sections 5.1 and 5.5.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
# What the request itself says, and what signs it.
_OWN: Final = re.compile(
    r"host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|user-agent|proxy-.*"
    r"|service-signature|svix-.*|webhook-.*",
    re.IGNORECASE,
)


def basic_authentication(username: str, password: str) -> tuple[str, str]:
    """The header field of a username and a password (RFC 7617)."""
    return "Authorization", "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def check(fields: HeaderFields) -> None:
    """Refuse what cannot be sent, or would replace what the request itself says. The error contains no value."""
    if len(fields) > MAX_FIELDS:
        raise errors.InvalidRequest(f"{len(fields)} header fields; at most {MAX_FIELDS} are allowed")
    for place, (name, value) in enumerate(fields):
        if not _NAME.fullmatch(name) or _OWN.fullmatch(name):
            raise errors.InvalidRequest(f"header field {place + 1}: this name cannot be used; choose another")
        if len(value) > MAX_CHARACTERS or not _VALUE.fullmatch(value):
            raise errors.InvalidRequest(
                f"header field {place + 1}: the value must be 1 to {MAX_CHARACTERS} printable ASCII characters"
            )
    if len({name.lower() for name, _ in fields}) < len(fields):
        raise errors.InvalidRequest("header fields: a name is repeated; give each once")


def encrypt(ctx: context.Context, fields: HeaderFields, *, webhook_id: str) -> bytes | None:
    """The ciphertext of header fields that were checked; None when there are none."""
    if not fields:
        return None
    return encryption.encrypt(
        ctx.keys.encryption,
        msgspec.json.encode(fields),
        owner=sealed_values.webhook_headers_owner(webhook_id),
        nonce=ctx.entropy(encryption.NONCE_BYTES),
    )


def decrypt(ctx: context.Context, webhook: webhooks.Webhook) -> list[tuple[str, str]]:
    """The header fields of an endpoint."""
    if webhook.request_headers is None:
        return []
    owner = sealed_values.webhook_headers_owner(webhook.id)
    text = encryption.decrypt(ctx.keys.encryption, webhook.request_headers, owner=owner)
    return msgspec.json.decode(text, type=list[tuple[str, str]])
