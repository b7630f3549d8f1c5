"""Unsubscribe links: a token that names an address, the list that it may leave, and a message (RFC 8058).

The token has all that the page and the unsubscription need, so a link outlives its message. It is readable by whoever
has the link, and signed: it can do nothing but what it names. It has no end; after the installation key was replaced
it is valid as long as what the old key signed.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final
from urllib import parse

import msgspec

from postroad import config, errors
from postroad.keys import installation_keys
from postroad.model.delivery import providers
from postroad.model.mail import limits

PATH: Final = "/unsubscribe"
SIGNATURE_BYTES: Final = 16


class Link(msgspec.Struct, frozen=True, array_like=True):
    """What a token names. `sender_domain` is for the recipient, who knows it."""

    account_id: str
    list_name: str
    email_key: str
    message_id: str
    sender_domain: str


_decoder: Final = msgspec.msgpack.Decoder(Link)


def headers(settings: config.Settings, key: bytes, link: Link, host: str | None = None) -> tuple[tuple[str, str], ...]:
    """The header fields of a message with this link, at any `host`. Raises InvalidRequest where there can be none."""
    base_url = config.public_url(settings)
    # Of mail that only reaches the simulator of `postroad dev`, the reader is on this machine.
    if any(upstream.name == providers.DEV_SIMULATOR for upstream in settings.upstreams):
        base_url = config.base_url(settings)
    elif not base_url.startswith("https://"):
        raise errors.InvalidRequest(
            "unsubscribe: this installation has no public https:// URL for the link; the operator sets http.base_url"
        )
    elif host:
        public = parse.urlsplit(base_url)
        base_url = public._replace(netloc=host if public.port is None else f"{host}:{public.port}").geturl()
    field = ("List-Unsubscribe", f"<{base_url.rstrip('/')}{PATH}/{write(key, link)}>")
    if len(": ".join(field)) > limits.HEADER_LINE_OCTETS:
        raise errors.InvalidRequest("unsubscribe.list: the link would be too long for a header; choose a shorter name")
    return field, ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")


def write(key: bytes, link: Link) -> str:
    named = msgspec.msgpack.encode(link)
    return base64.urlsafe_b64encode(named + _signature(key, named)).decode().rstrip("=")


def read(keys: installation_keys.Keys, token: str) -> Link | None:
    """What a token names that was signed with the current key or one that it replaced; otherwise None."""
    try:
        signed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    named, signature = signed[:-SIGNATURE_BYTES], signed[-SIGNATURE_BYTES:]
    known = (keys, *keys.previous)
    if not any(hmac.compare_digest(signature, _signature(each.unsubscribe, named)) for each in known):
        return None
    return _decoder.decode(named)


def _signature(key: bytes, named: bytes) -> bytes:
    return hashlib.blake2b(named, key=key, digest_size=SIGNATURE_BYTES).digest()
