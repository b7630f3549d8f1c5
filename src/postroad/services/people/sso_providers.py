"""OpenID Connect providers: their documents and keys, the exchange of a code, and ID tokens (Core 1.0)."""

import base64
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib import parse

import msgspec
from cryptography.hazmat.primitives.asymmetric import rsa

from postroad import config, errors
from postroad.concurrency import caches
from postroad.model.people import login_rules
from postroad.network.http import guarded_client

# ID tokens (OpenID Connect Core 1.0 section 3.1.3.7): what one must prove before anybody is logged in by it.
#
# The algorithm comes from our list and decides which kind of key may verify: no token is unsigned, and none is checked
# with a public key as if it were a shared secret (RFC 8725 section 3.1). Keys come from the provider's documents only;
# those that a token's header brings or points to are not read. Times are checked with the clock that is given.

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


def read_id_token(
    text: str, keys: Sequence[Mapping[str, Any]], *, expected: Expected, groups_claim: str, now: int
) -> login_rules.Person:
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
    return login_rules.Person(
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

    fitting = [candidate for candidate in keys if key_fits(candidate, algorithm)]
    if kid is not None:
        fitting = [candidate for candidate in fitting if candidate.get("kid") == kid]
    if len(fitting) != 1:
        raise UnknownKey("the provider has no key with the id in its header, or several")
    try:
        key = jwt.PyJWK(dict(fitting[0]), algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        raise TokenRefused("the provider's key is invalid") from None
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise TokenRefused(f"the provider's key is shorter than {MIN_RSA_BITS} bits")
    return key


def key_fits(key: Mapping[str, Any], algorithm: str) -> bool:
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
    return tuple(group for group in found if isinstance(group, str))[:MAX_GROUPS] if isinstance(found, list) else ()


DOCUMENT_SECONDS: Final = 3_600
FAILURE_SECONDS: Final = 10
KEYS_AGAIN_SECONDS: Final = 60
RESPONSE_SECONDS: Final = 5.0
# Discovery documents have some kilobytes, and so have keys and tokens with many groups.
MAX_BYTES: Final = 256 * 1024
MAX_PROVIDERS: Final = 500
MAX_KEYS: Final = 100
OK: Final = 200
DOCUMENT: Final = "/.well-known/openid-configuration"
_JSON: Final = (("Accept", "application/json"),)
# What a provider may say about itself in an error (RFC 6749 section 5.2).
_MAX_ERROR_CHARACTERS: Final = 100

_Document = TypeVar("_Document")


class ProviderError(Exception):
    """The provider cannot be used now; the text says why, and quotes nothing secret."""


class _KeySet(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class _TokenResponse(msgspec.Struct, frozen=True):
    id_token: str


class _TokenError(msgspec.Struct, frozen=True):
    error: str = ""


class _Kept(msgspec.Struct, frozen=True):
    """What was fetched, or why not. Before `again_at`, an unknown key makes nobody fetch it again."""

    found: Any
    valid_until: float
    problem: str = ""
    again_at: float = 0.0


class Providers:
    """Fetches from providers, and remembers their documents."""

    def __init__(
        self,
        settings: config.Settings,
        guarded: guarded_client.WebhookClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guarded = guarded
        opened = msgspec.structs.replace(settings.webhooks, allow_insecure=True)
        self._trusted = guarded_client.WebhookClient(msgspec.structs.replace(settings, webhooks=opened))
        self._clock = clock
        self._metadata: caches.TtlCache[_Kept] = caches.TtlCache(max_entries=MAX_PROVIDERS, clock=clock)
        self._keys: caches.TtlCache[_Kept] = caches.TtlCache(max_entries=MAX_PROVIDERS, clock=clock)

    async def close(self) -> None:
        await self._metadata.close()
        await self._keys.close()
        await self._trusted.close()

    async def metadata(self, registration: login_rules.Registration) -> login_rules.Metadata:
        """What a provider says about itself. Raises ProviderError."""

        async def fetch(_: str) -> _Kept:
            return await self._kept(self._discover(registration))

        found: login_rules.Metadata = _found(await self._metadata.get_or_fetch(registration.cache_key, fetch))
        return found

    async def check(self, registration: login_rules.Registration) -> None:
        """Raise ProviderError unless the provider has a discovery document, and keys that we can use."""
        keys = (await self._known_keys(registration)).found
        if not any(key_fits(key, algorithm) for key in keys for algorithm in ALGORITHMS):
            raise ProviderError("the provider has no key that can verify its ID tokens")

    async def verify(
        self, registration: login_rules.Registration, text: str, *, nonce: str, groups_claim: str, now: int
    ) -> login_rules.Person:
        """The person of an ID token. Raises ProviderError or TokenRefused."""
        expected = Expected(registration.issuer, registration.client_id, nonce)
        keys = await self._known_keys(registration)
        try:
            return read_id_token(text, keys.found, expected=expected, groups_claim=groups_claim, now=now)
        except UnknownKey:
            if self._clock() < keys.again_at:
                raise
        again_at = self._clock() + KEYS_AGAIN_SECONDS
        # At once, so that others do not fetch as well; and a failure must not replace keys that work for them.
        self._keys.put(registration.cache_key, msgspec.structs.replace(keys, again_at=again_at))
        fetched = _found(await self._kept(self._fetch_keys(registration)))
        kept = _Kept(fetched, self._clock() + DOCUMENT_SECONDS, again_at=again_at)
        self._keys.put(registration.cache_key, kept)
        return read_id_token(text, fetched, expected=expected, groups_claim=groups_claim, now=now)

    async def exchange(
        self, registration: login_rules.Registration, *, code: str, verifier: str, redirect_uri: str
    ) -> str:
        """The ID token for a code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). Raises ProviderError."""
        metadata = await self.metadata(registration)
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers = [*_JSON, ("Content-Type", "application/x-www-form-urlencoded")]
        if _uses_basic(registration, metadata):
            # RFC 6749 section 2.3.1: both parts are form-encoded first.
            pair = f"{parse.quote_plus(registration.client_id)}:{parse.quote_plus(registration.client_secret)}"
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        else:
            fields["client_id"] = registration.client_id
            if registration.client_secret:
                fields["client_secret"] = registration.client_secret
        body = parse.urlencode(fields).encode()
        try:
            status, answer = await self._client(registration).submit(
                metadata.token_endpoint, body, headers, max_bytes=MAX_BYTES, seconds=RESPONSE_SECONDS
            )
        except errors.InvalidRequest as problem:
            raise ProviderError(f"the token endpoint cannot be used: {problem.message}") from None
        if status != OK:
            raise ProviderError(f"the token endpoint responded with {status}{_said(answer)}")
        return _decoded(answer, _TokenResponse, what="the response of the token endpoint").id_token

    async def _discover(self, registration: login_rules.Registration) -> login_rules.Metadata:
        url = registration.issuer.removesuffix("/") + DOCUMENT
        found = await self._document(registration, url, login_rules.Metadata, what="the discovery document")
        if found.issuer != registration.issuer:
            raise ProviderError(
                f"the discovery document names the issuer {found.issuer[:200]!r}; enter the issuer exactly like this"
            )
        for endpoint in (found.authorization_endpoint, found.end_session_endpoint):
            if endpoint and not self._is_web_url(registration, endpoint):
                raise ProviderError("the discovery document has an endpoint that is not an HTTPS URL")
        return found

    async def _known_keys(self, registration: login_rules.Registration) -> _Kept:
        async def fetch(_: str) -> _Kept:
            return await self._kept(self._fetch_keys(registration))

        kept = await self._keys.get_or_fetch(registration.cache_key, fetch)
        _found(kept)
        return kept

    async def _fetch_keys(self, registration: login_rules.Registration) -> Sequence[Mapping[str, Any]]:
        metadata = await self.metadata(registration)
        return (await self._document(registration, metadata.jwks_uri, _KeySet, what="the key set")).keys[:MAX_KEYS]

    async def _document(
        self, registration: login_rules.Registration, url: str, kind: type[_Document], *, what: str
    ) -> _Document:
        try:
            body = await self._client(registration).fetch(
                url, max_bytes=MAX_BYTES, seconds=RESPONSE_SECONDS, headers=_JSON
            )
        except errors.InvalidRequest as problem:
            raise ProviderError(f"{what} cannot be fetched: {problem.message}") from None
        return _decoded(body, kind, what=what)

    async def _kept(self, fetched: Coroutine[None, None, object]) -> _Kept:
        """What was fetched, with the time for which it counts."""
        try:
            found = await fetched
        except ProviderError as problem:
            return _Kept(None, self._clock() + FAILURE_SECONDS, str(problem))
        return _Kept(found, self._clock() + DOCUMENT_SECONDS)

    def _client(self, registration: login_rules.Registration) -> guarded_client.WebhookClient:
        return self._trusted if registration.is_trusted else self._guarded

    def _is_web_url(self, registration: login_rules.Registration, url: str) -> bool:
        scheme = parse.urlsplit(url).scheme
        return url.isascii() and url.isprintable() and scheme in {"https", parse.urlsplit(registration.issuer).scheme}


def _found(kept: _Kept) -> Any:  # noqa: ANN401 - what was fetched
    if kept.problem:
        raise ProviderError(kept.problem)
    return kept.found


def _uses_basic(registration: login_rules.Registration, metadata: login_rules.Metadata) -> bool:
    """Whether the secret is in the header field, as it is unless the provider wants otherwise."""
    methods = metadata.token_endpoint_auth_methods_supported
    return bool(registration.client_secret) and (
        "client_secret_basic" in methods or "client_secret_post" not in methods
    )


def _decoded(body: bytes, kind: type[_Document], *, what: str) -> _Document:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ProviderError(f"{what} is not what OpenID Connect prescribes") from None


def _said(answer: bytes) -> str:
    """The error code of a provider, if it is one."""
    try:
        code = msgspec.json.decode(answer, type=_TokenError).error[:_MAX_ERROR_CHARACTERS]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""
    return f": {code}" if code and code.isascii() and code.isprintable() else ""
