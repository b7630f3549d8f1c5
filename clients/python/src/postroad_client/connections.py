"""Exchanges for `Client`, with sockets and the HTTP reader of the standard library.

A connection is kept for the next request when its response ended where it said it would. Nothing of the environment has
a say, and nothing is sent twice here: an exchange that fails on a kept connection is tried again by who may.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from typing import Final

from postroad_client import calls, configuration, failures, responses, wire

# As many threads as may send at once without opening new connections each time.
MAX_IDLE: Final = 8
# Servers and proxies close idle connections after some time; this is less than most of them wait.
IDLE_SECONDS: Final = 15.0
# They are the same since Python 3.10.
TIMEOUTS: Final = (TimeoutError, socket.timeout)


class Pool:
    """Connections to one place: any number in use, a few idle."""

    def __init__(self, place: configuration.Place, ssl_context: ssl.SSLContext | None) -> None:
        self._place = place
        self._context = None
        if place.scheme == "https":
            self._context = ssl_context or _default_context()
        self._lock = threading.Lock()
        self._idle: list[wire.Wire] = []
        self._is_closed = False

    def exchange(self, step: calls.Exchange) -> responses.Response | failures.Failure:
        """The response, or why there is none."""
        deadline = time.monotonic() + step.timeout
        where = self._place.authority
        try:
            connection = self._take() or wire.Wire.connect(self._place, self._context, deadline)
        except TIMEOUTS:
            return failures.too_slow(where, step.timeout)
        except OSError as error:
            return failures.unreached(where, error)
        try:
            return connection.exchange(self._bytes(step.request), method=step.request.method, deadline=deadline)
        except TIMEOUTS:
            return failures.too_slow(where, step.timeout)
        except OSError as error:
            return failures.lost(where, error)
        except (http.client.HTTPException, ValueError) as error:  # ValueError: a chunk of fewer than 0 bytes
            return failures.not_http(where, str(error))
        finally:
            self._keep(connection)

    def close(self) -> None:
        """Close what is idle, and what is in use as soon as it is not; no call works after this."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> wire.Wire | None:
        """One that can be used again. The one that was used last comes first, so that the others may grow old."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise RuntimeError("the client is closed")
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.is_usable(IDLE_SECONDS):
                return connection
            connection.close()

    def _keep(self, connection: wire.Wire) -> None:
        connection.rest()
        with self._lock:
            if connection.is_reusable and not self._is_closed and len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _bytes(self, request: calls.Request) -> bytes:
        """Head and body in one piece, so that one deadline holds for sending it."""
        headers = {"Host": self._place.authority, **request.headers}
        if request.method != "GET":
            headers["Content-Length"] = str(len(request.body))
        lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + request.body


def _default_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    # The default since Python 3.10.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
