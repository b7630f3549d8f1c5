"""Login tokens (JSON Web Tokens, RFC 7519), other values that a browser keeps for us, and secrets that work once."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import jwt
import msgspec

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.model.units import identifiers, times
from postroad.storage.people import users

ALGORITHM: Final = "HS256"
# Between header, payload and signature (RFC 7515 section 3.1).
_DOTS: Final = 2
# The maximum clock difference of two hosts.
SKEW_SECONDS: Final = 60
# The end of the year 9999, the last that datetime can represent.
LAST_SECOND: Final = 253_402_300_799
# Times are checked with the clock of the context, and types by `Claims`: strictly, where PyJWT would convert.
_OPTIONS: Final = jwt.types.Options(verify_exp=False, verify_iat=False, verify_nbf=False)


class Claims(msgspec.Struct, frozen=True):
    """The claims of a token. `role` is informational; the role in the database counts."""

    sub: str
    acc: str
    role: str
    iat: int
    exp: int
    jti: str
    epoch: int
    nbf: int = 0

    @property
    def expires_at(self) -> int:
        """Microseconds."""
        return self.exp * times.SECOND


def claims_for(user: users.User, *, now: int, seconds: int, token_id: str) -> Claims:
    issued = now // times.SECOND
    return Claims(
        sub=user.id,
        acc=user.account_id,
        role=user.role,
        iat=issued,
        exp=min(issued + seconds, LAST_SECOND),
        jti=token_id,
        epoch=user.tokens_valid_from,
    )


def sign(claims: Claims, key: bytes) -> str:
    payload = msgspec.to_builtins(claims)
    del payload["nbf"]
    return jwt.encode(payload, key, algorithm=ALGORITHM)


def read(text: str, key: bytes, *, now: int, previous: Sequence[bytes] = ()) -> Claims:
    """The claims of a valid token of ours; whether it was revoked is for the database to say.

    Tokens that were signed with `previous` keys are valid until they end.
    """
    try:
        token = _decoded(text, key, previous)
        claims = msgspec.convert(token["payload"], Claims)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise refusal() from None
    # We set no issuer and no audience: a token that has them is meant for someone else.
    if "crit" in token["header"] or token["payload"].keys() & {"iss", "aud"}:
        raise refusal()
    second = now // times.SECOND
    latest = second + SKEW_SECONDS
    if not second < claims.exp <= LAST_SECOND or claims.iat > latest or claims.nbf > latest:
        raise refusal()
    if not identifiers.is_identifier(claims.sub, identifiers.USER) or not identifiers.is_identifier(
        claims.jti, identifiers.TOKEN
    ):
        raise refusal()
    return claims


def _decoded(text: str, key: bytes, previous: Sequence[bytes]) -> dict[str, Any]:
    """The header and the payload of a token that one of these keys has signed."""
    for older in previous:
        try:
            return jwt.decode_complete(text, key, algorithms=[ALGORITHM], options=_OPTIONS)
        except jwt.InvalidSignatureError:
            key = older
    return jwt.decode_complete(text, key, algorithms=[ALGORITHM], options=_OPTIONS)


def refusal() -> errors.Unauthorized:
    return errors.Unauthorized("Authorization: the token is invalid or has expired; log in again")


def has_form(text: str) -> bool:
    """Whether a text looks like a token, whatever it says."""
    return text.count(".") == _DOTS


# Secrets that work once, such as that of a password link: unguessable, and the database has only their hash.
#
# 43 characters of 62 are 256 bits; a verifier of PKCE must have at least as many (RFC 7636 section 4.1).
SECRET_CHARACTERS: Final = 43


def new_secret() -> str:
    return installation_keys.random_text(SECRET_CHARACTERS)


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()


# Values that a browser keeps for us: signed, not secret.

ValueT = TypeVar("ValueT", bound=msgspec.Struct)


def write_value(ctx: context.Context, value: msgspec.Struct, *, purpose: str) -> str:
    """The value as text for a cookie; a value of one purpose is not read as one of another."""
    text = base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")
    return f"{text}.{_value_signature(ctx.keys.session, purpose, text)}"


def read_value(ctx: context.Context, text: str, kind: type[ValueT], *, purpose: str) -> ValueT | None:
    """The value that we wrote, also with a key of the installation that was replaced since; otherwise None."""
    encoded, _, signature = text.partition(".")
    keys = (ctx.keys.session, *(previous.session for previous in ctx.keys.previous))
    if not any(
        hmac.compare_digest(_value_signature(key, purpose, encoded).encode(), signature.encode()) for key in keys
    ):
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)), type=kind)
    except (binascii.Error, msgspec.DecodeError):  # of another version
        return None


def _value_signature(key: bytes, purpose: str, text: str) -> str:
    return hmac.new(key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()
