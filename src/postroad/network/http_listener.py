"""The HTTP listener: its connections share an application and the `Date` field."""

import email.utils
import time
from collections.abc import Callable

from postroad.network import http_exchange, http_limits, http_protocol, listener, open_connections


class HttpListener(listener.Listener):
    """One listening address and its connections."""

    def __init__(
        self,
        application: http_exchange.Application,
        *,
        refuse: http_exchange.Refuse,
        limits: http_limits.Limits | None = None,
        is_exempt: Callable[[str], bool] | None = None,
        sweep_seconds: float = listener.SWEEP_SECONDS,
    ) -> None:
        """`is_exempt` says which addresses may have any number of connections."""
        bounds = limits or http_limits.Limits()
        connections = open_connections.OpenConnections(
            total=bounds.connections, per_address=bounds.connections_per_address, is_exempt=is_exempt
        )
        self._shared = shared = http_exchange.HttpListenerState(application, refuse)
        super().__init__(
            lambda: http_protocol.HttpProtocol(shared, limits=bounds, connections=connections),
            shared=shared,
            connections=connections,
            working=shared.in_flight,
            sweep_seconds=sweep_seconds,
        )

    def on_sweep(self) -> None:
        """Update the date (RFC 9110 section 6.6.1)."""
        self._shared.date = b"date: " + email.utils.formatdate(time.time(), usegmt=True).encode()
