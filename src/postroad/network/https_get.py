"""One GET over HTTPS, as fetching an MTA-STS policy needs it (RFC 8461 section 3.3), and no more.

The certificate has to be valid for the host. Redirects are not followed, nothing is cached, and both the response and
the time for everything together are bounded. The addresses come from the caller, who has asked DNS. A response without
a stated length is refused: whoever can cut the connection could shorten it. What goes wrong is a value.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httptools

HTTPS_PORT: Final = 443
# RFC 8461 section 3.3 suggests a minute and 64 KiB; mail waits for this one.
SECONDS: Final = 10.0
CONNECT_SECONDS: Final = 3.0
BODY_BYTES: Final = 64 * 1024
# A head, or the marks between chunks, of a policy's response are a few hundred bytes.
OVERHEAD_BYTES: Final = 16 * 1024
# More would not be reached in the time.
MOST_ADDRESSES: Final = 3
_CHUNK: Final = 16 * 1024
_FIRST_FINAL_STATUS: Final = 200


@dataclass(frozen=True, slots=True)
class Response:
    """A complete response. The media type is in lower case and without parameters."""

    status: int
    media_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no response; `trouble` is the reason in a few words."""

    trouble: str


class Client:
    """Gets from hosts whose certificates the context trusts: by default those of the system's authorities."""

    def __init__(
        self, context: ssl.SSLContext | None = None, *, port: int = HTTPS_PORT, seconds: float = SECONDS
    ) -> None:
        self._context = context
        self._port = port
        self._seconds = seconds

    async def get(self, host: str, path: str, *, addresses: Sequence[str]) -> Response | Failure:
        """The response of the first address that can be reached."""
        trouble = f"{host} has no address"
        try:
            async with asyncio.timeout(self._seconds):
                for address in addresses[:MOST_ADDRESSES]:
                    try:
                        return await self._get_from(address, host=host, path=path)
                    except _Unusable as problem:
                        return Failure(f"{host}: {problem}")
                    except OSError as problem:
                        trouble = f"{host} at {address}: {_words(problem)}"
        except TimeoutError:
            return Failure(f"{host}: no complete response within {self._seconds:g} seconds")
        return Failure(trouble)

    async def _get_from(self, address: str, *, host: str, path: str) -> Response:
        async with self._connected(address, host) as (reader, writer):
            port = "" if self._port == HTTPS_PORT else f":{self._port}"
            writer.write(
                f"GET {path} HTTP/1.1\r\nHost: {host}{port}\r\nAccept: text/plain\r\nAccept-Encoding: identity\r\n"
                "Connection: close\r\n\r\n".encode("ascii")
            )
            await writer.drain()
            return await _read(reader)

    @contextlib.asynccontextmanager
    async def _connected(
        self, address: str, host: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        if self._context is None:
            # Reads the system's authorities, which takes milliseconds: once, and only when a policy is fetched.
            self._context = ssl.create_default_context()
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(
                address, self._port, ssl=self._context, server_hostname=host, limit=_CHUNK
            )
        try:
            yield reader, writer
        finally:
            # Everything wanted was read, and a polite close would wait for the other side.
            writer.transport.abort()


class _Unusable(Exception):
    """The host answered, but not with a response that counts."""


@dataclass(slots=True)
class _Reading:
    """What the parser calls; an interim response (RFC 9110 section 15.2) is forgotten when it is complete."""

    parser: Any = None
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field; of several with one name the last counts."""
        self.headers[name.lower()] = value

    def on_body(self, content: bytes) -> None:
        """A part of the body, whose size was bounded with that of the input."""
        if not self.is_complete:
            self.body += content

    def on_message_complete(self) -> None:
        """A response is complete."""
        if self.parser.get_status_code() >= _FIRST_FINAL_STATUS:
            self.is_complete = True
        else:
            self.headers.clear()


async def _read(reader: asyncio.StreamReader) -> Response:
    reading = _Reading()
    reading.parser = httptools.HttpResponseParser(reading)
    received = 0
    try:
        while not reading.is_complete:
            chunk = await reader.read(_CHUNK)
            received += len(chunk)
            if not chunk:
                raise _Unusable("the response ends before it is complete")
            if received > BODY_BYTES + OVERHEAD_BYTES or len(reading.body) > BODY_BYTES:
                raise _Unusable("the response is too long")
            reading.parser.feed_data(chunk)
        return _complete(reading)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        raise _Unusable("the response is not HTTP") from None
    finally:
        reading.parser = None  # it holds our methods, and so us


def _complete(reading: _Reading) -> Response:
    if len(reading.body) > BODY_BYTES:
        raise _Unusable("the response is too long")
    media_type = reading.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return Response(reading.parser.get_status_code(), media_type.decode("latin-1"), bytes(reading.body))


def _words(problem: OSError) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not valid: {problem.verify_message}"
    if isinstance(problem, TimeoutError):
        return "no connection in time"
    return problem.strerror or str(problem) or "the connection was lost"
