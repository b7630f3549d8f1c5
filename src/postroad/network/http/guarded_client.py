"""The SSRF guard between customers' URLs and the network: which URLs may be saved, a POST to an endpoint, a download.

A host is resolved for each attempt, all its addresses are checked, and the connection goes to one of the checked
addresses, also over a kept connection. One forbidden address among several blocks the attempt, which defeats DNS
rebinding. Redirects are not followed, unless a caller of `fetch` wants it, and then each of them is checked like the
first URL. Proxies of the environment are not used, and five seconds are the limit for everything together, unless a
caller of `fetch` sets another. The result of a POST is always a `WebhookResponse`.
"""

import asyncio
import codecs
import functools
import time
from collections.abc import Callable, Coroutine, Sequence
from enum import StrEnum
from typing import Final
from urllib import parse

import idna
import msgspec

from postroad import config, errors
from postroad.concurrency import caches
from postroad.model.units import destinations
from postroad.network import hostname
from postroad.network.dns import resolver
from postroad.network.http import http_client

OK: Final = 200
# Those that lead a GET elsewhere, RFC 9110 section 15.4.
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
ATTEMPT_SECONDS: Final = 5.0
BODY_BYTES: Final = 2048
# Part of an attempt, or of the wait for a form.
QUERY_SECONDS: Final = 3.0
TRY_SECONDS: Final = 1.0
# A burst of events queries once, and a changed record takes effect with the next retry. A record with TTL 0 is never
# kept.
FRESH_SECONDS: Final = 1.0
# At most 4 MB of hosts; some 3 MB of ordinary URLs, and 32 MB of the longest.
MAX_HOSTS: Final = 5_000
MAX_URLS: Final = 5_000
# More would not be reached in time, and the next must still have some of it.
MAX_ADDRESSES: Final = 3
CONNECT_SECONDS: Final = 1.5
# Many servers close idle connections after 5 seconds; reusing one at that moment would fail the attempt.
IDLE_SECONDS: Final = 4.0
# The system may query DNS for its own name; without an answer by then it has none.
NAME_SECONDS: Final = 1.0
LOOPBACK: Final = ("127.0.0.1", "::1")


class FailureCode(StrEnum):
    """Why an attempt failed when no status code says so."""

    BLOCKED_DESTINATION = "blocked_destination"
    DNS_FAILURE = "dns_failure"
    CONNECTION_FAILED = "connection_failed"
    TLS_FAILURE = "tls_failure"
    TIMEOUT = "timeout"
    INVALID_RESPONSE = "invalid_response"
    REDIRECT_NOT_FOLLOWED = "redirect_not_followed"
    INTERRUPTED = "interrupted"


class WebhookResponse(msgspec.Struct, frozen=True):
    """The result of an attempt. The body is text of at most `BODY_BYTES`; `error` is a code, a colon and a sentence."""

    status_code: int | None = None
    body: str | None = None
    error: str | None = None

    @property
    def succeeded(self) -> bool:
        """Any 2xx is success."""
        return self.error is None and self.status_code is not None and 200 <= self.status_code <= 299  # noqa: PLR2004


class _UrlGuard(msgspec.Struct, frozen=True):
    """The URL rules of this installation, and a cache of accepted URLs."""

    rules: destinations.UrlRules
    read: Callable[[str], destinations.WebhookUrl]


class _ResolvedHost(msgspec.Struct, frozen=True):
    """The addresses of a host; `refusal` says why it must not be contacted."""

    addresses: tuple[str, ...]
    valid_until: float
    refusal: tuple[FailureCode, str] | None = None


class WebhookClient:
    def __init__(self, settings: config.Settings) -> None:
        webhooks = settings.webhooks
        self._resolver = resolver.Resolver(
            settings.delivery.resolvers,
            try_seconds=TRY_SECONDS,
            query_seconds=QUERY_SECONDS,
            # Two per attempt, so that silent name servers delay no other attempt.
            max_concurrent=2 * webhooks.connections,
        )
        self._client = http_client.Client(idle_seconds=IDLE_SECONDS, max_idle=webhooks.connections)
        self._found: caches.TtlCache[_ResolvedHost] = caches.TtlCache(max_entries=MAX_HOSTS, clock=time.monotonic)
        self._guard = caches.LazyValue(lambda: _guard(settings))
        # Reading the CA certificates takes milliseconds: in a thread, and only when first needed.
        self._tls = caches.LazyValue(lambda: asyncio.to_thread(http_client.client_context, webhooks.ca_file))

    async def check(self, url: str, *, is_enabled: bool = True) -> str:
        """The normalized URL to save. Raises InvalidRequest; a host that does not resolve yet is accepted.

        The host of a disabled webhook is not resolved: disabling must always be possible.
        """
        receiver = destinations.parse_webhook_url(url, (await self._guard.get()).rules)
        if receiver.literal is None and is_enabled:
            try:
                async with asyncio.timeout(QUERY_SECONDS):
                    code, sentence = (await self._look_up(receiver.host)).refusal or (None, "")
            except TimeoutError:
                return receiver.url  # every attempt checks again
            if code is FailureCode.BLOCKED_DESTINATION:
                raise errors.InvalidRequest(f"url: {sentence}; webhooks are sent to public addresses only")
        return receiver.url

    async def post(self, url: str, body: bytes, headers: Sequence[tuple[str, str]]) -> WebhookResponse:
        """One attempt. The headers come from this service, never from its users."""
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                found = await self._reach(url, lambda receiver: _request(receiver, body, headers), max_body=BODY_BYTES)
        except TimeoutError:
            return failure(FailureCode.TIMEOUT, f"no complete response within {ATTEMPT_SECONDS:g} seconds")
        return found if isinstance(found, WebhookResponse) else _answer(found)

    async def close(self) -> None:
        await self._found.close()
        await self._client.close()

    async def fetch(
        self, url: str, *, max_bytes: int, seconds: float, redirects: int = 0, headers: Sequence[tuple[str, str]] = ()
    ) -> bytes:
        """The file at a customer's URL. Raises InvalidRequest, whose message says why there is none."""
        asked = self._follow(url, headers, max_body=max_bytes, redirects=redirects)
        found = await _in_time(asked, seconds=seconds)
        if found.status != OK:
            raise errors.InvalidRequest(f"the server responded with {found.status}; it must respond with 200")
        return _complete(found, max_bytes=max_bytes)

    async def submit(
        self, url: str, body: bytes, headers: Sequence[tuple[str, str]], *, max_bytes: int, seconds: float
    ) -> tuple[int, bytes]:
        """The status and the body that a POST gets. Raises InvalidRequest, whose message says why there is none."""
        asked = self._reach(url, lambda receiver: _request(receiver, body, headers), max_body=max_bytes)
        found = await _in_time(asked, seconds=seconds)
        return found.status, _complete(found, max_bytes=max_bytes)

    async def _follow(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_body: int, redirects: int
    ) -> http_client.Response | WebhookResponse:
        """The response after at most so many redirects."""
        for _ in range(redirects):
            found = await self._reach(url, lambda receiver: _download(receiver, headers), max_body=max_body)
            if isinstance(found, WebhookResponse) or found.status not in REDIRECTS or b"location" not in found.headers:
                return found
            try:
                url = parse.urljoin(url, found.headers[b"location"].decode("latin-1"))
            except ValueError:
                return failure(FailureCode.INVALID_RESPONSE, "the redirect is not a valid URL")
        return await self._reach(url, lambda receiver: _download(receiver, headers), max_body=max_body)

    async def _reach(
        self, url: str, request: Callable[[destinations.WebhookUrl], bytes], *, max_body: int
    ) -> http_client.Response | WebhookResponse:
        """The response to a request, or the failure to get one."""
        try:
            receiver = (await self._guard.get()).read(url)
        except errors.InvalidRequest as refusal:
            # It was saved under other rules.
            return failure(FailureCode.BLOCKED_DESTINATION, refusal.message.removeprefix("url: "))
        addresses: tuple[str, ...]
        if receiver.literal is not None:
            addresses = (str(destinations.effective(receiver.literal)),)
        else:
            found = await self._found.get_or_fetch(receiver.host, self._look_up)
            if found.refusal is not None:
                return failure(*found.refusal)
            addresses = found.addresses
        try:
            return await self._exchange(receiver, addresses, request(receiver), max_body=max_body)
        except http_client.HttpClientError as trouble:
            return failure(FailureCode(trouble.code), str(trouble))

    async def _exchange(
        self, receiver: destinations.WebhookUrl, addresses: Sequence[str], request: bytes, *, max_body: int
    ) -> http_client.Response:
        """The response of the first reachable address."""
        try:
            tls = await self._tls.get() if receiver.scheme == "https" else None
        except OSError:
            raise http_client.HttpClientError(
                FailureCode.TLS_FAILURE, "this service cannot read webhooks.ca_file"
            ) from None
        troubles = []
        for address in addresses:
            place = http_client.Peer(host=receiver.host, address=address, port=receiver.port, tls=tls)
            # The last one may use the rest of the attempt's time.
            connect_timeout = CONNECT_SECONDS if address != addresses[-1] else None
            try:
                return await self._client.exchange(place, request, max_body=max_body, connect_seconds=connect_timeout)
            except http_client.ConnectError as trouble:
                troubles.append(trouble)
        raise troubles[0]

    async def _look_up(self, host: str) -> _ResolvedHost:
        if destinations.is_local_host(host):
            answer: resolver.Answer[str] | resolver.Failure = resolver.Answer(LOOPBACK, ttl=0)
        else:
            answer = await self._resolver.addresses(host)
        now = time.monotonic()
        if isinstance(answer, resolver.Failure):
            return _ResolvedHost((), now + FRESH_SECONDS, (FailureCode.DNS_FAILURE, f"{host}: {answer.detail}"))
        # All addresses are checked, and those that are used are kept.
        return _ResolvedHost(
            answer.records[:MAX_ADDRESSES],
            now + min(answer.ttl, FRESH_SECONDS),
            _refusal(host, answer, (await self._guard.get()).rules),
        )


async def _in_time(
    asked: Coroutine[None, None, http_client.Response | WebhookResponse], *, seconds: float
) -> http_client.Response:
    """The response, if there is one within this time."""
    try:
        async with asyncio.timeout(seconds):
            found = await asked
    except TimeoutError:
        raise errors.InvalidRequest(f"no complete response within {seconds:g} seconds") from None
    if isinstance(found, WebhookResponse):
        raise errors.InvalidRequest((found.error or "").partition(": ")[2])
    return found


def _complete(found: http_client.Response, *, max_bytes: int) -> bytes:
    """The body of a response, of which nothing is missing."""
    if found.is_truncated:
        raise errors.InvalidRequest(f"the file is larger than {max_bytes} bytes")
    if found.ends_with_connection:
        # Whoever cuts the connection would shorten the file, and nobody would see it.
        raise errors.InvalidRequest("the response states no length, so the file may be incomplete")
    return found.body


def failure(code: FailureCode, sentence: str) -> WebhookResponse:
    return WebhookResponse(error=f"{code}: {sentence}")


async def _guard(settings: config.Settings) -> _UrlGuard:
    rules = destinations.UrlRules(
        allow_insecure=settings.webhooks.allow_insecure,
        allow_private=settings.webhooks.allow_private,
        own_names=await _own_names(settings),
        own_domain=_base_host(settings).partition(".")[2],
    )
    return _UrlGuard(
        rules, functools.lru_cache(maxsize=MAX_URLS)(functools.partial(destinations.parse_webhook_url, rules=rules))
    )


async def _own_names(settings: config.Settings) -> frozenset[str]:
    try:
        async with asyncio.timeout(NAME_SECONDS):
            system = await hostname.name()
    except TimeoutError:
        system = ""
    names = (
        _base_host(settings),
        settings.delivery.hostname,
        settings.delivery.return_path_domain,
        system if "." in system else "",
    )
    return frozenset(name.lower().rstrip(".") for name in names if name)


def _base_host(settings: config.Settings) -> str:
    """The service's public name as URLs are normalized, so that the two can be compared."""
    host = (parse.urlsplit(config.public_url(settings)).hostname or "").rstrip(".")
    try:
        return host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return host  # not a name that a webhook's URL can have


def _refusal(host: str, answer: resolver.Answer[str], rules: destinations.UrlRules) -> tuple[FailureCode, str] | None:
    if not answer.records:
        what = "has no address" if answer.exists else "does not exist"
        return FailureCode.DNS_FAILURE, f"{host} {what}"
    for address in answer.records:
        kind = destinations.why_url_blocked(address, host, rules)
        if kind is not None:
            # The address is not named: a customer could probe names for internal addresses.
            return FailureCode.BLOCKED_DESTINATION, f"{host} resolves to {kind}"
    return None


def _request(receiver: destinations.WebhookUrl, body: bytes, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [
        f"POST {receiver.target} HTTP/1.1",
        f"Host: {receiver.authority}",
        *(f"{name}: {value}" for name, value in headers),
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _download(receiver: destinations.WebhookUrl, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [
        f"GET {receiver.target} HTTP/1.1",
        f"Host: {receiver.authority}",
        "Accept-Encoding: identity",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _answer(response: http_client.Response) -> WebhookResponse:
    error = None
    if 300 <= response.status <= 399:  # noqa: PLR2004 - redirections, RFC 9110 section 15.4
        error = (
            f"{FailureCode.REDIRECT_NOT_FOLLOWED}: the endpoint responded with {response.status}; save the final URL"
        )
    return WebhookResponse(response.status, _text(response), error)


def _text(response: http_client.Response) -> str:
    """The body as storable text of at most `BODY_BYTES`."""
    # A character cut at the end is dropped.
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(response.body, not response.is_truncated)
    text = text.replace("\x00", "\ufffd")  # PostgreSQL has no NUL in a text
    return text.encode()[:BODY_BYTES].decode(errors="ignore")
