"""One GET over HTTPS, as fetching an MTA-STS policy needs it (RFC 8461 section 3.3).

The certificate must be valid for the host. Redirects are not followed, nothing is cached, and the response and the
total time are bounded. The caller resolves the addresses. A response without a stated length is refused: an attacker
who can cut the connection could shorten it. A failure is returned as a value.
"""

import asyncio
import ssl
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.network.http import http_client

HTTPS_PORT: Final = 443
# RFC 8461 section 3.3 suggests a minute and 64 KiB; mail waits for this one.
TOTAL_SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 3.0
MAX_BODY_BYTES: Final = 64 * 1024
# More would not be reached in the time.
MAX_ADDRESSES: Final = 3


class Response(msgspec.Struct, frozen=True):
    """A complete response. The media type is in lower case and without parameters."""

    status: int
    media_type: str
    body: bytes


class Failure(msgspec.Struct, frozen=True):
    """No response; `detail` is the reason. `is_about_tls`: the host is there, and its certificate is not valid."""

    detail: str
    is_about_tls: bool = False


class Client:
    """Gets from hosts whose certificates the context trusts: by default those of the system's authorities."""

    def __init__(
        self, context: ssl.SSLContext | None = None, *, port: int = HTTPS_PORT, seconds: float = TOTAL_SECONDS
    ) -> None:
        self._context = context
        self._port = port
        self._seconds = seconds

    async def get(self, host: str, path: str, *, addresses: Sequence[str]) -> Response | Failure:
        """The response of the first address that can be reached."""
        detail, is_about_tls = f"{host} has no address", False
        try:
            async with asyncio.timeout(self._seconds):
                for address in addresses[:MAX_ADDRESSES]:
                    try:
                        return _usable(await self._get_from(address, host=host, path=path), host=host)
                    except http_client.HttpClientError as problem:
                        if problem.code == "invalid_response":
                            return Failure(f"{host}: {problem}")
                        detail, is_about_tls = str(problem), problem.code == "tls_failure"
                    except TimeoutError:
                        detail, is_about_tls = f"{host} at {address}: connection timed out", False
        except TimeoutError:
            return Failure(f"{host}: no complete response within {self._seconds:g} seconds")
        return Failure(detail, is_about_tls)

    async def _get_from(self, address: str, *, host: str, path: str) -> http_client.Response:
        if self._context is None:
            # Only when a policy is fetched.
            self._context = http_client.client_context()
        peer = http_client.Peer(host=host, address=address, port=self._port, tls=self._context)
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await http_client.connect(peer)
        port = "" if self._port == HTTPS_PORT else f":{self._port}"
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}{port}\r\nAccept: text/plain\r\nAccept-Encoding: identity\r\n"
            "Connection: close\r\n\r\n"
        )
        try:
            return await connection.exchange(request.encode("ascii"), max_body=MAX_BODY_BYTES)
        finally:
            connection.abort()


def _usable(response: http_client.Response, *, host: str) -> Response | Failure:
    if response.is_truncated:
        return Failure(f"{host}: the response is too long")
    if response.ends_with_connection:
        return Failure(f"{host}: the response ends before it is complete")
    media_type = response.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return Response(response.status, media_type.decode("latin-1"), response.body)
