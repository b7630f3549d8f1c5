"""ID tokens (OpenID Connect Core 1.0 section 3.1.3.7): what one must prove before anybody is logged in by it.

The algorithm comes from our list and decides which kind of key may verify: no token is unsigned, and none is checked
with a public key as if it were a shared secret (RFC 8725 section 3.1). Keys come from the provider's documents only;
those that a token's header brings or points to are not read. Times are checked with the clock that is given.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa

# By algorithm, the type and the curve that a key must have.
ALGORITHMS: Final[Mapping[str, tuple[str, str | None]]] = {
    "RS256": ("RSA", None),
    "PS256": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "EdDSA": ("OKP", "Ed25519"),
}
MIN_RSA_BITS: Final = 2048
# The clocks of two hosts differ by no more.
SKEW_SECONDS: Final = 60
# A token is fetched within seconds of its making. An older one is from somewhere else.
MAX_AGE_SECONDS: Final = 600
# OpenID Connect Core 1.0 section 2.
MAX_SUBJECT_CHARACTERS: Final = 255
MAX_GROUPS: Final = 1_000


class TokenRefused(Exception):
    """The token proves nothing; the text says why, and quotes nothing secret."""


class UnknownKey(TokenRefused):
    """No key of the provider has the id in the token's header: it may have a new one."""


class _Claims(msgspec.Struct, frozen=True):
    """The claims that every token has, and those that we read."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    iat: float
    nonce: str | None = None
    azp: str | None = None
    nbf: float = 0
    email: str | None = None
    email_verified: bool | None = None
    # What Entra ID says instead: the domain of the email is verified by its owner.
    xms_edov: bool | None = None


class Expected(msgspec.Struct, frozen=True):
    """What a token must be about."""

    issuer: str
    client_id: str
    nonce: str


class Person(msgspec.Struct, frozen=True):
    """Whom a provider vouches for. `email` is None unless the provider says that it is verified."""

    issuer: str
    subject: str
    email: str | None
    has_email: bool
    groups: tuple[str, ...]


def read(text: str, keys: Sequence[Mapping[str, Any]], *, expected: Expected, groups_claim: str, now: int) -> Person:
    """The person that a token is about; `now` is in seconds. Raises TokenRefused."""
    payload = _verified(text, keys)
    try:
        claims = msgspec.convert(payload, _Claims)
    except msgspec.ValidationError as problem:
        raise TokenRefused(f"a claim is missing or has the wrong type: {problem}") from None
    _check_parties(claims, expected)
    _check_times(claims, now=now)
    if not 0 < len(claims.sub) <= MAX_SUBJECT_CHARACTERS or not claims.sub.isprintable():
        raise TokenRefused("sub is empty, too long or not printable")
    is_verified = claims.email_verified is True or (claims.email_verified is None and claims.xms_edov is True)
    return Person(
        issuer=claims.iss,
        subject=claims.sub,
        email=claims.email if is_verified else None,
        has_email=claims.email is not None,
        groups=_groups(payload.get(groups_claim)),
    )


def _verified(text: str, keys: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The payload of a token that a key of the provider has signed."""
    import jwt  # noqa: PLC0415 - every command builds the providers, and few processes see a token

    # Claims are checked here, with the clock of the context and with types by `_Claims`.
    options = jwt.types.Options(
        verify_exp=False,
        verify_iat=False,
        verify_nbf=False,
        verify_aud=False,
        verify_iss=False,
        verify_sub=False,
        verify_jti=False,
    )
    try:
        header = jwt.get_unverified_header(text)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("it is not a JSON Web Token") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise TokenRefused(f"it is signed with {str(algorithm)[:20]!r}; accepted are {', '.join(ALGORITHMS)}")
    if "crit" in header:
        raise TokenRefused("it has critical extensions")
    key = _key(keys, algorithm, kid)
    try:
        payload: dict[str, Any] = jwt.decode_complete(text, key, algorithms=[algorithm], options=options)["payload"]
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise TokenRefused("its signature is wrong") from None
    return payload


def _key(keys: Sequence[Mapping[str, Any]], algorithm: str, kid: object) -> Any:  # noqa: ANN401 - a public key
    """The key with this id that fits the algorithm. Without an id there must be only one that fits."""
    import jwt  # noqa: PLC0415 - as above

    fitting = [one for one in keys if fits(one, algorithm)]
    if kid is not None:
        fitting = [one for one in fitting if one.get("kid") == kid]
    if len(fitting) != 1:
        raise UnknownKey("the provider has no key with the id in its header, or several")
    try:
        key = jwt.PyJWK(dict(fitting[0]), algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        raise TokenRefused("the provider's key is invalid") from None
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise TokenRefused(f"the provider's key is shorter than {MIN_RSA_BITS} bits")
    return key


def fits(key: Mapping[str, Any], algorithm: str) -> bool:
    """Whether a key of a provider is for this algorithm."""
    kind, curve = ALGORITHMS[algorithm]
    return (
        key.get("kty") == kind
        and (curve is None or key.get("crv") == curve)
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        # A provider that publishes a private key has lost it.
        and "d" not in key
    )


def _check_parties(claims: _Claims, expected: Expected) -> None:
    """Who made the token, for whom, and for which login."""
    audience = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
    if claims.iss != expected.issuer:
        raise TokenRefused("it is from another issuer")
    if expected.client_id not in audience:
        raise TokenRefused("it is for another client")
    if (claims.azp is None and len(audience) > 1) or claims.azp not in (None, expected.client_id):
        raise TokenRefused("it was made for another client")
    if claims.nonce != expected.nonce:
        raise TokenRefused("it belongs to another login")


def _check_times(claims: _Claims, *, now: int) -> None:
    latest = now + SKEW_SECONDS
    if claims.exp <= now - SKEW_SECONDS:
        raise TokenRefused("it has expired; check the clocks of both hosts")
    if claims.iat > latest or claims.nbf > latest:
        raise TokenRefused("it is from the future; check the clocks of both hosts")
    if claims.iat < now - MAX_AGE_SECONDS:
        raise TokenRefused("it was made too long ago; check the clocks of both hosts")


def _groups(value: object) -> tuple[str, ...]:
    """The groups of a claim: one or several texts; what else it contains counts for nothing."""
    found = [value] if isinstance(value, str) else value
    return tuple(one for one in found if isinstance(one, str))[:MAX_GROUPS] if isinstance(found, list) else ()
