"""Tokens of people who logged in: JSON Web Tokens (RFC 7519), signed with HS256 and a key of their own.

Only that algorithm is accepted and only our own key is tried; whatever a token's header says about keys is not read,
and one that calls an extension critical is refused (RFC 7515 section 4.1.11). `epoch` is the person's
`tokens_valid_from` as it was at the log-in: a token of another epoch is dead. That is exact however far apart the
clocks of two hosts are, and it also kills a token that was issued for an old password while the password was being
changed.
"""

from typing import Final

import jwt
import msgspec

from postroad import errors
from postroad.model import identifiers, times
from postroad.storage import users

ALGORITHM: Final = "HS256"
# How far the clocks of two hosts may be apart.
SKEW_SECONDS: Final = 60
# The end of the year 9999, the last that a calendar here can show.
LAST_SECOND: Final = 253_402_300_799
# Times are judged by the clock of the context, and their types by `Claims`: exactly, where PyJWT would convert.
_OPTIONS: Final = jwt.types.Options(verify_exp=False, verify_iat=False, verify_nbf=False)


class Claims(msgspec.Struct, frozen=True):
    """What a token says. `role` is for the holder to read; what counts is the role in the store."""

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
    """What a new token of a person says."""
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


def read(text: str, key: bytes, *, now: int) -> Claims:
    """The claims of a token that is ours and valid now by itself; whether it was taken back is for the store to say."""
    try:
        token = jwt.decode_complete(text, key, algorithms=[ALGORITHM], options=_OPTIONS)
        claims = msgspec.convert(token["payload"], Claims)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise refusal() from None
    # We name no issuer and no audience: a token that does was meant for someone else.
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


def refusal() -> errors.Unauthorized:
    """The one answer to every token that is not valid."""
    return errors.Unauthorized("Authorization: the token is not valid, or not valid any more; log in again")
