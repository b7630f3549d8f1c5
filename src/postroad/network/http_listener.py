"""The HTTP listener: its connections share an application, the `Date` field and an optional certificate."""

import asyncio
import email.utils
import ssl
import time
from collections.abc import Callable

from postroad.network import (
    alpn_challenges,
    http_exchange,
    http_limits,
    http_protocol,
    listener,
    open_connections,
    tls_accept,
)


class HttpListener(listener.Listener):
    """One listening address and its connections."""

    def __init__(
        self,
        application: http_exchange.Application,
        *,
        refuse: http_exchange.Refuse,
        limits: http_limits.Limits | None = None,
        is_exempt: Callable[[str], bool] | None = None,
        tls: Callable[[], ssl.SSLContext | None] | None = None,
        challenges: alpn_challenges.AlpnChallenges | None = None,
        refresh: Callable[[], None] | None = None,
        sweep_seconds: float = listener.SWEEP_SECONDS,
    ) -> None:
        """`is_exempt` says which addresses may have any number of connections.

        With `tls` it serves HTTPS: `tls` is called for each handshake and returns None while there is no certificate,
        `refresh` once a second to check for a renewed one. `challenges` are those of an authority.
        """
        bounds = limits or http_limits.Limits()
        connections = open_connections.OpenConnections(
            total=bounds.connections, per_address=bounds.connections_per_address, is_exempt=is_exempt
        )
        self._shared = shared = http_exchange.HttpListenerState(application, refuse)
        self._refresh = refresh

        def make_session(on_admitted: Callable[[], None] | None = None) -> asyncio.Protocol:
            return http_protocol.HttpProtocol(shared, limits=bounds, connections=connections, on_admitted=on_admitted)

        handshakes = None
        if tls is not None:
            handshakes = tls_accept.Handshakes(
                tls,
                make_session,
                connections=connections,
                state=shared,
                seconds=bounds.handshake_seconds,
                challenges=challenges,
            )
        super().__init__(
            lambda: make_session() if handshakes is None else tls_accept.TlsAccept(handshakes),
            shared=shared,
            connections=connections,
            working=shared.in_flight,
            sweep_seconds=sweep_seconds,
        )

    def on_sweep(self) -> None:
        """Update the date (RFC 9110 section 6.6.1), and check for a renewed certificate."""
        self._shared.date = b"date: " + email.utils.formatdate(time.time(), usegmt=True).encode()
        if self._refresh is not None:
            self._refresh()
