"""One request to an endpoint: signed, with the header fields of the endpoint, sent through the SSRF guard, timed."""

import base64
import re
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.keys import encryption, installation_keys
from postroad.model.units import times
from postroad.network.http import guarded_client
from postroad.protocol.signatures import webhook_signature
from postroad.storage.mail import webhooks

HeaderFields = Sequence[tuple[str, str]]

MAX_HEADER_FIELDS: Final = 20
MAX_HEADER_CHARACTERS: Final = 1024
# RFC 9110 sections 5.1 and 5.5.
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
# What the request itself says, and what signs it.
_OWN_HEADERS: Final = re.compile(
    r"host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|user-agent|proxy-.*"
    r"|service-signature|svix-.*|webhook-.*",
    re.IGNORECASE,
)


def basic_authentication(username: str, password: str) -> tuple[str, str]:
    """The header field of a username and a password (RFC 7617)."""
    return "Authorization", "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def check_headers(fields: HeaderFields) -> None:
    """Refuse what cannot be sent, or would replace what the request itself says. The error contains no value."""
    if len(fields) > MAX_HEADER_FIELDS:
        raise errors.InvalidRequest(f"{len(fields)} header fields; at most {MAX_HEADER_FIELDS} are allowed")
    for place, (name, value) in enumerate(fields):
        if not _NAME.fullmatch(name) or _OWN_HEADERS.fullmatch(name):
            raise errors.InvalidRequest(f"header field {place + 1}: this name cannot be used; choose another")
        if len(value) > MAX_HEADER_CHARACTERS or not _VALUE.fullmatch(value):
            raise errors.InvalidRequest(
                f"header field {place + 1}: the value must be 1 to {MAX_HEADER_CHARACTERS} printable ASCII characters"
            )
    if len({name.lower() for name, _ in fields}) < len(fields):
        raise errors.InvalidRequest("header fields: a name is repeated; give each once")


def encrypt_headers(ctx: context.Context, fields: HeaderFields, *, webhook_id: str) -> bytes | None:
    """The ciphertext of header fields that were checked; None when there are none."""
    if not fields:
        return None
    return encryption.encrypt(
        ctx.keys.encryption,
        msgspec.json.encode(fields),
        owner=encryption.webhook_headers_owner(webhook_id),
        nonce=ctx.entropy(encryption.NONCE_BYTES),
    )


def decrypt_headers(ctx: context.Context, webhook: webhooks.Webhook) -> list[tuple[str, str]]:
    if webhook.request_headers is None:
        return []
    owner = encryption.webhook_headers_owner(webhook.id)
    text = encryption.decrypt(ctx.keys.encryption, webhook.request_headers, owner=owner)
    return msgspec.json.decode(text, type=list[tuple[str, str]])


# One webhook delivery attempt: signed now, sent through the SSRF guard, timed.
#
# The body is sent and signed as the stored bytes. The signature's time comes from the context's clock; the duration is
# measured on a monotonic clock.

USER_AGENT: Final = "Service-Webhook/1.0"


class AttemptResult(msgspec.Struct, frozen=True):
    """The result of an attempt, its start on the context's clock, and its duration in microseconds."""

    started_at: int
    duration: int
    response: guarded_client.WebhookResponse


async def attempt(
    ctx: context.Context, webhook: webhooks.Webhook, *, event_id: str, secrets: Sequence[str], body: bytes
) -> AttemptResult:
    """Sign with these secrets, newest first, and send to the URL of an endpoint."""
    started_at, began = ctx.clock(), time.monotonic_ns()
    timestamp = started_at // times.SECOND
    headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", USER_AGENT),
        (webhook_signature.HEADER, webhook_signature.header(secrets, body, timestamp=timestamp)),
    ]
    of_format = ctx.event_formats.get(webhook.format)
    if of_format is not None and of_format.sign is not None:
        headers += of_format.sign(secrets, body, event_id, timestamp)
    elif webhook.standard_signature:
        headers += webhook_signature.standard_headers(secrets, body, event_id=event_id, timestamp=timestamp)
    headers += decrypt_headers(ctx, webhook)
    response = await ctx.webhook_client.post(webhook.url, body, headers)
    return AttemptResult(started_at, (time.monotonic_ns() - began) // 1_000, response)


def attempt_row(key: webhooks.Key, number: int, attempted: AttemptResult) -> webhooks.Attempt:
    """The attempt as the delivery log stores it."""
    account_id, webhook_id, delivery_id = key
    response = attempted.response
    return webhooks.Attempt(
        account_id=account_id,
        webhook_id=webhook_id,
        delivery_id=delivery_id,
        number=number,
        started_at=attempted.started_at,
        duration=attempted.duration,
        status_code=response.status_code,
        response_body=response.body,
        error=response.error,
    )


# Webhook signing secrets: random, shown once, and stored encrypted for their endpoint.
#
# Every signature needs the secret, so it is encrypted and not hashed. Decryption takes microseconds; nothing decrypted
# is kept.

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the beginning of every secret
# 43 characters of 62 are 256 bits, as much as the signature's hash can use (RFC 2104 section 3). One more makes them
# whole base64, which libraries for Standard Webhooks and Svix decode.
SECRET_CHARACTERS: Final = 44
# Enough to tell two secrets apart, and no help in guessing one.
HINT_CHARACTERS: Final = 4


def new_secret() -> str:
    return SECRET_PREFIX + installation_keys.random_text(SECRET_CHARACTERS)


def secret_hint(secret: str) -> str:
    """The part of a secret that may always be shown."""
    return f"{SECRET_PREFIX}…{secret[-HINT_CHARACTERS:]}"


def encrypt_secret(ctx: context.Context, secret: str, *, webhook_id: str) -> bytes:
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    return encryption.encrypt(
        ctx.keys.encryption, secret.encode(), owner=encryption.webhook_owner(webhook_id), nonce=nonce
    )


def decrypt_secret(ctx: context.Context, row: webhooks.Secret) -> str:
    return encryption.decrypt(ctx.keys.encryption, row.secret, owner=encryption.webhook_owner(row.webhook_id)).decode()
