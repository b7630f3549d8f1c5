"""Values that a browser keeps for us: signed, so that only ours are read. They are not secret."""

import base64
import binascii
import hashlib
import hmac
from typing import TypeVar

import msgspec

from postroad.services import context

ValueT = TypeVar("ValueT", bound=msgspec.Struct)


def write(ctx: context.Context, value: msgspec.Struct, *, purpose: str) -> str:
    """The value as text for a cookie; a value of one purpose is not read as one of another."""
    text = base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")
    return f"{text}.{_signature(ctx.keys.session, purpose, text)}"


def read(ctx: context.Context, text: str, kind: type[ValueT], *, purpose: str) -> ValueT | None:
    """The value that we wrote, also with a key of the installation that was replaced since; otherwise None."""
    encoded, _, signature = text.partition(".")
    keys = (ctx.keys.session, *(previous.session for previous in ctx.keys.previous))
    if not any(hmac.compare_digest(_signature(key, purpose, encoded).encode(), signature.encode()) for key in keys):
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)), type=kind)
    except (binascii.Error, msgspec.DecodeError):  # of another version
        return None


def _signature(key: bytes, purpose: str, text: str) -> str:
    return hmac.new(key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()
