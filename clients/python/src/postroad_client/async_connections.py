"""Exchanges for `AsyncClient`, over aiohttp. Nothing of the environment has a say, no proxy and no netrc."""

from __future__ import annotations

import asyncio
import io
import ssl
import sys
from typing import Final

from postroad_client import calls, configuration, failures, responses

try:
    import aiohttp
    import yarl

    if sys.version_info >= (3, 11):
        from asyncio import timeout
    else:
        from async_timeout import timeout  # as aiohttp does
except ImportError as missing:
    raise ImportError("AsyncClient needs aiohttp; install postroad-client[async]") from missing

# Servers and proxies close idle connections after some time; this is less than most of them wait.
IDLE_SECONDS: Final = 15.0
READ_BYTES: Final = 64 * 1024


class Pool:
    """A session of aiohttp, made when it is needed first: that must be inside the event loop."""

    def __init__(self, place: configuration.Place, ssl_context: ssl.SSLContext | None) -> None:
        self._place = place
        self._ssl = ssl_context
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    async def exchange(self, step: calls.Exchange) -> responses.Response | failures.Failure:
        """The response, or why there is none."""
        if self._is_closed:
            raise RuntimeError("the client is closed")
        if self._session is None:
            self._session = self._open()
        where = self._place.authority
        try:
            async with timeout(step.timeout):
                return await self._exchange(self._session, step.request)
        except asyncio.TimeoutError:  # not TimeoutError before Python 3.11
            return failures.too_slow(where, step.timeout)
        except _NoAnswer as nothing:
            return nothing.failure
        except (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError):
            return failures.lost(where, EOFError("it was closed before the response was complete"))
        except aiohttp.ClientError as error:
            return failures.not_http(where, getattr(error, "message", str(error)))

    async def close(self) -> None:
        """Close every connection; no call works after this."""
        self._is_closed = True
        if self._session is not None:
            await self._session.close()

    async def _exchange(self, session: aiohttp.ClientSession, request: calls.Request) -> responses.Response:
        place = self._place
        url = yarl.URL(f"{place.scheme}://{place.authority}{request.path}", encoded=True)
        # As a file, it is sent in parts, and other tasks get their turn in between.
        data = io.BytesIO(request.body) if request.body else None
        async with session.request(
            request.method, url, headers=request.headers, data=data, allow_redirects=False
        ) as response:
            body = bytearray()
            while len(body) <= responses.MAX_BODY_BYTES and (part := await response.content.read(READ_BYTES)):
                body += part
            headers = {name.lower(): value for name, value in response.headers.items()}
            return responses.Response(response.status, headers, bytes(body))

    def _open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._ssl or True, keepalive_timeout=IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # none of its own: that of an attempt is around all of it
            auto_decompress=False,
            middlewares=(self._once,),
        )

    async def _once(self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        """Hide lost connections from aiohttp, which would repeat a GET by itself, without a pause and uncounted."""
        try:
            return await handler(request)
        except aiohttp.ClientConnectorCertificateError as error:
            raise _NoAnswer(failures.unreached(self._place.authority, error.certificate_error)) from error
        except aiohttp.ClientConnectorError as error:
            raise _NoAnswer(failures.unreached(self._place.authority, error.os_error)) from error
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            raise _NoAnswer(failures.lost(self._place.authority, error)) from error


class _NoAnswer(Exception):
    """Not even the beginning of one."""

    def __init__(self, failure: failures.Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure
