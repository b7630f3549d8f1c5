"""The SMTP listener: its connections share features, limits, a policy factory and an optional certificate."""

import asyncio
import ssl
from collections.abc import Callable

from postroad.network import content_spool, listener, smtp_policy, smtp_session, tls_accept
from postroad.protocol.smtp import server_events


class SmtpListener(listener.Listener):
    """One listening address and its connections. STARTTLS and `implicit_tls` need `tls`.

    `tls` is called for each handshake and returns None while there is no certificate, `refresh` once a second to check
    for a renewed one.
    """

    def __init__(
        self,
        make_policy: Callable[[server_events.Session], smtp_policy.SessionPolicy],
        *,
        features: server_events.Features,
        failed: Callable[[Exception], None],
        limits: smtp_session.ListenerLimits | None = None,
        spool: content_spool.ContentSpool | None = None,
        tls: Callable[[], ssl.SSLContext | None] | None = None,
        implicit_tls: bool = False,
        refresh: Callable[[], None] | None = None,
        sweep_seconds: float = listener.SWEEP_SECONDS,
    ) -> None:
        if tls is None and (features.starttls or implicit_tls):
            raise ValueError("TLS is offered without a certificate")
        shared = smtp_session.SmtpListenerState(
            features,
            make_policy,
            failed=failed,
            limits=limits or smtp_session.ListenerLimits(),
            spool=spool or content_spool.ContentSpool(),
            tls=tls,
        )

        handshakes = None
        if implicit_tls and tls is not None:
            handshakes = tls_accept.Handshakes(
                tls,
                lambda on_admitted: smtp_session.SmtpSession(shared, on_admitted=on_admitted),
                connections=shared.connections,
                state=shared,
                seconds=shared.limits.handshake_seconds,
            )

        def make_connection() -> asyncio.Protocol:
            return smtp_session.SmtpSession(shared) if handshakes is None else tls_accept.TlsAccept(handshakes)

        super().__init__(
            make_connection,
            shared=shared,
            connections=shared.connections,
            working=shared.working,
            sweep_seconds=sweep_seconds,
        )
        self._refresh = refresh

    def on_sweep(self) -> None:
        """Check for a renewed certificate."""
        if self._refresh is not None:
            self._refresh()
