"""OpenID Connect providers: their documents and keys, and the exchange of a code for an ID token.

A provider that an account has chosen is reached through the SSRF guard of webhooks; that of the installation may be
anywhere, because the operator chose it. Redirects are not followed, and every response has a limit of size and time.
Documents are kept for an hour, a failure for some seconds. A key that is not known makes us fetch the keys again, at
most once a minute, so a rotation is noticed at once and no token makes us ask more often.
"""

import base64
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib import parse

import msgspec

from postroad import config, errors
from postroad.concurrency import ttl_cache
from postroad.services.sso import id_tokens
from postroad.services.webhooks import client as webhook_client

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


class Metadata(msgspec.Struct, frozen=True):
    """The discovery document (OpenID Connect Discovery 1.0 section 3, RFC 9207 section 3)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class _KeySet(msgspec.Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class _TokenResponse(msgspec.Struct, frozen=True):
    id_token: str


class _TokenError(msgspec.Struct, frozen=True):
    error: str = ""


@dataclass(frozen=True, slots=True)
class Registration:
    """How Postroad is registered at a provider; `is_trusted` for the one that the operator has chosen."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    is_trusted: bool

    @property
    def cache_key(self) -> str:
        """What is fetched under different rules is kept apart."""
        return f"{self.is_trusted} {self.issuer}"


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
        guarded: webhook_client.WebhookClient,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guarded = guarded
        opened = msgspec.structs.replace(settings.webhooks, allow_insecure=True)
        self._trusted = webhook_client.WebhookClient(msgspec.structs.replace(settings, webhooks=opened))
        self._clock = clock
        self._metadata: ttl_cache.TtlCache[_Kept] = ttl_cache.TtlCache(max_entries=MAX_PROVIDERS, clock=clock)
        self._keys: ttl_cache.TtlCache[_Kept] = ttl_cache.TtlCache(max_entries=MAX_PROVIDERS, clock=clock)

    async def close(self) -> None:
        """Close open connections."""
        await self._metadata.close()
        await self._keys.close()
        await self._trusted.close()

    async def metadata(self, registration: Registration) -> Metadata:
        """What a provider says about itself. Raises ProviderError."""

        async def fetch(_: str) -> _Kept:
            return await self._kept(self._discover(registration))

        found: Metadata = _found(await self._metadata.get_or_fetch(registration.cache_key, fetch))
        return found

    async def check(self, registration: Registration) -> None:
        """Raise ProviderError unless the provider has a discovery document, and keys that we can use."""
        keys = (await self._known_keys(registration)).found
        if not any(id_tokens.fits(key, algorithm) for key in keys for algorithm in id_tokens.ALGORITHMS):
            raise ProviderError("the provider has no key that can verify its ID tokens")

    async def verify(
        self, registration: Registration, text: str, *, nonce: str, groups_claim: str, now: int
    ) -> id_tokens.Person:
        """The person of an ID token. Raises ProviderError or TokenRefused."""
        expected = id_tokens.Expected(registration.issuer, registration.client_id, nonce)
        keys = await self._known_keys(registration)
        try:
            return id_tokens.read(text, keys.found, expected=expected, groups_claim=groups_claim, now=now)
        except id_tokens.UnknownKey:
            if self._clock() < keys.again_at:
                raise
        again_at = self._clock() + KEYS_AGAIN_SECONDS
        # At once, so that others do not fetch as well; and a failure must not replace keys that work for them.
        self._keys.put(registration.cache_key, msgspec.structs.replace(keys, again_at=again_at))
        fetched = _found(await self._kept(self._fetch_keys(registration)))
        kept = _Kept(fetched, self._clock() + DOCUMENT_SECONDS, again_at=again_at)
        self._keys.put(registration.cache_key, kept)
        return id_tokens.read(text, fetched, expected=expected, groups_claim=groups_claim, now=now)

    async def exchange(self, registration: Registration, *, code: str, verifier: str, redirect_uri: str) -> str:
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
            headers.append(("Authorization", _basic(registration)))
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

    async def _discover(self, registration: Registration) -> Metadata:
        url = registration.issuer.removesuffix("/") + DOCUMENT
        found = await self._document(registration, url, Metadata, what="the discovery document")
        if found.issuer != registration.issuer:
            raise ProviderError(
                f"the discovery document names the issuer {found.issuer[:200]!r}; enter the issuer exactly like this"
            )
        for endpoint in (found.authorization_endpoint, found.end_session_endpoint):
            if endpoint and not self._is_web_url(registration, endpoint):
                raise ProviderError("the discovery document has an endpoint that is not an HTTPS URL")
        return found

    async def _known_keys(self, registration: Registration) -> _Kept:
        async def fetch(_: str) -> _Kept:
            return await self._kept(self._fetch_keys(registration))

        kept = await self._keys.get_or_fetch(registration.cache_key, fetch)
        _found(kept)
        return kept

    async def _fetch_keys(self, registration: Registration) -> Sequence[Mapping[str, Any]]:
        metadata = await self.metadata(registration)
        return (await self._document(registration, metadata.jwks_uri, _KeySet, what="the key set")).keys[:MAX_KEYS]

    async def _document(self, registration: Registration, url: str, kind: type[_Document], *, what: str) -> _Document:
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

    def _client(self, registration: Registration) -> webhook_client.WebhookClient:
        return self._trusted if registration.is_trusted else self._guarded

    def _is_web_url(self, registration: Registration, url: str) -> bool:
        """Whether a browser may be sent there."""
        scheme = parse.urlsplit(url).scheme
        return url.isascii() and url.isprintable() and scheme in {"https", parse.urlsplit(registration.issuer).scheme}


def _found(kept: _Kept) -> Any:  # noqa: ANN401 - what was fetched
    if kept.problem:
        raise ProviderError(kept.problem)
    return kept.found


def _uses_basic(registration: Registration, metadata: Metadata) -> bool:
    """Whether the secret is in the header field, as it is unless the provider wants otherwise."""
    methods = metadata.token_endpoint_auth_methods_supported
    return bool(registration.client_secret) and (
        "client_secret_basic" in methods or "client_secret_post" not in methods
    )


def _basic(registration: Registration) -> str:
    """RFC 6749 section 2.3.1: both parts are form-encoded first."""
    pair = f"{parse.quote_plus(registration.client_id)}:{parse.quote_plus(registration.client_secret)}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


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
