"""Login tokens: JSON Web Tokens (RFC 7519), signed with HS256 and a key of their own.

Only this algorithm and key are accepted; key hints in a token's header are not read, and critical extensions are
refused (RFC 7515 section 4.1.11). Whether a token was revoked is in the database: it has ended when its session has no
row. `epoch` is for hosts of older versions, which compare it with the user's `tokens_valid_from`.
"""

from collections.abc import Sequence
from typing import Any, Final

import jwt
import msgspec

from postroad import errors
from postroad.model import identifiers, times
from postroad.storage import users

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
    """The claims of a new token for a user."""
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
    """The token as text."""
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
    """The error for every invalid token."""
    return errors.Unauthorized("Authorization: the token is invalid or has expired; log in again")


def has_form(text: str) -> bool:
    """Whether a text looks like a token, whatever it says."""
    return text.count(".") == _DOTS
