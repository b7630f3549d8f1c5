"""Reads from the JSON API of another service: GET requests with a key, one after the other.

Certificates are verified, redirects are not followed, and neither proxies nor other variables of the environment apply;
plain HTTP is for this host alone. Responses are bounded. A service that is overloaded or limits the rate is asked again
after the time that it names (RFC 9110 section 10.2.3), a few times; reading twice changes nothing. The key is in no
error: where the service quotes it, it is masked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final

import msgspec

from postroad import errors
from postroad.model.units import destinations
from postroad.network.dns import resolver
from postroad.network.http import http_client

# A page of a hundred templates has a few megabytes; 32 MiB are 200,000 suppressed addresses.
MAX_BODY_BYTES: Final = 32 * 1024 * 1024
RESPONSE_SECONDS: Final = 60.0
CONNECT_SECONDS: Final = 10.0
MAX_ADDRESSES: Final = 3
# Half a minute of trying, where the service names no time of its own.
RETRY_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
# Who is asked to wait longer than this should run the command again.
MAX_RETRY_AFTER_SECONDS: Final = 120
SHOWN_CHARACTERS: Final = 300
MASK: Final = "***"
LOOPBACK: Final = ("127.0.0.1", "::1")

Sleep = Callable[[float], Awaitable[None]]


class ApiError(Exception):
    """The API gave no usable response; the text says why and is safe to show."""


class Unavailable(ApiError):
    """It cannot be reached, or fails, again and again: nothing else can be read either."""


class Refused(ApiError):
    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class TooLarge(ApiError):
    """The response is larger than `MAX_BODY_BYTES`."""


class _Errors(msgspec.Struct):
    """The sentence in an error, of the services that there are."""

    message: str = ""
    Message: str = ""


class JsonApi:
    """An API below a URL. `headers` hold the key; `secrets` are masked in what the service says."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        secrets: Sequence[str],
        name_servers: Sequence[str] = (),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._url = _parse(url)
        self._prefix = self._url.target.partition("?")[0].rstrip("/")
        self._headers = dict(headers)
        self._secrets = [secret for secret in secrets if secret]
        self._resolver = resolver.Resolver(name_servers)
        self._sleep = sleep
        self._client = http_client.Client(idle_seconds=RESPONSE_SECONDS, max_idle=1)
        self._addresses: Sequence[str] = ()
        self._tls = http_client.client_context() if self._url.scheme == "https" else None

    async def close(self) -> None:
        await self._client.close()

    async def get(self, target: str) -> bytes:
        problem = ""
        for wait in (*RETRY_SECONDS, None):
            asked = None
            try:
                response = await self._exchange(target)
            except http_client.HttpClientError as error:
                problem = str(error)
            except TimeoutError:
                problem = f"{self._url.host}: no complete response within {RESPONSE_SECONDS:g} seconds"
            else:
                if response.status < HTTPStatus.MULTIPLE_CHOICES:
                    return _complete(response, self._url.host)
                problem = self._refusal(target, response)
                if not (
                    response.status == HTTPStatus.TOO_MANY_REQUESTS
                    or response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                ):
                    raise Refused(problem, status=response.status)
                asked = _retry_after(response)
            if wait is None:
                break
            if asked is not None and asked > MAX_RETRY_AFTER_SECONDS:
                raise Unavailable(f"{problem}; asked to wait for {asked} seconds")
            await self._sleep(wait if asked is None else asked)
        raise Unavailable(f"{problem}; tried {len(RETRY_SECONDS) + 1} times")

    async def _exchange(self, target: str) -> http_client.Response:
        async with asyncio.timeout(RESPONSE_SECONDS):
            addresses = self._addresses = self._addresses or await self._look_up()
            fields = {"Host": self._url.authority, "Accept": "application/json", "Accept-Encoding": "identity"}
            lines = [f"{name}: {value}" for name, value in (fields | self._headers).items()]
            request = "\r\n".join([f"GET {self._prefix}{target} HTTP/1.1", *lines, "", ""]).encode("ascii")
            for address in addresses:
                peer = http_client.Peer(host=self._url.host, address=address, port=self._url.port, tls=self._tls)
                try:
                    return await self._client.exchange(
                        peer, request, max_body=MAX_BODY_BYTES, connect_seconds=CONNECT_SECONDS
                    )
                except http_client.ConnectError:
                    if address == addresses[-1]:
                        raise
        raise AssertionError("a host has an address")  # pragma: no cover

    async def _look_up(self) -> Sequence[str]:
        host = self._url.host
        if self._url.literal is not None:
            return (host,)
        if destinations.is_local_host(host):
            return LOOPBACK
        answer = await self._resolver.addresses(host)
        if isinstance(answer, resolver.Failure):
            raise http_client.HttpClientError("dns_failure", f"{host}: {answer.detail}")
        if not answer.records:
            raise http_client.HttpClientError("dns_failure", f"{host} has no address")
        return answer.records[:MAX_ADDRESSES]

    def _refusal(self, target: str, response: http_client.Response) -> str:
        try:
            found = msgspec.json.decode(response.body, type=_Errors)
            said = found.message or found.Message
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            said = ""
        for secret in self._secrets:
            said = said.replace(secret, MASK)
        shown = "".join(character if character.isprintable() else "?" for character in said[:SHOWN_CHARACTERS])
        path = target.partition("?")[0]
        return f"{self._url.host} responded to {path} with {response.status}{f': {shown}' if shown else ''}"


def _parse(url: str) -> destinations.WebhookUrl:
    """The URL. Raises InvalidRequest: a key must not go over the network in the clear."""
    parsed = destinations.parse_webhook_url(url, destinations.UrlRules(allow_insecure=True))
    is_local = parsed.literal.is_loopback if parsed.literal else destinations.is_local_host(parsed.host)
    if parsed.scheme != "https" and not is_local:
        raise errors.InvalidRequest(f"url: {parsed.host} is another host; use https://")
    return parsed


def _complete(response: http_client.Response, host: str) -> bytes:
    if response.is_truncated:
        raise TooLarge(f"{host}: the response is larger than {MAX_BODY_BYTES} bytes")
    if response.ends_with_connection:
        raise Unavailable(f"{host}: the response ends before it is complete")
    return response.body


def _retry_after(response: http_client.Response) -> int | None:
    """The seconds that the service names; a date is left to our own waiting times."""
    text = response.headers.get(b"retry-after", b"").strip()
    return min(int(text), 10**9) if text.isdigit() and len(text) < 20 else None  # noqa: PLR2004 - no huge integers
