"""The SMTP listener: its connections share features, limits, a policy factory and an optional certificate."""

import asyncio
import ssl
from collections.abc import Callable

from postroad.network import content_spool, listener, smtp_policy, smtp_session, smtp_tls_accept
from postroad.protocol.smtp import server_events


class SmtpListener(listener.Listener):
    """One listening address and its connections. STARTTLS and `implicit_tls` need `tls`.

    `tls` is called for each handshake, `refresh` once a second to check for a renewed certificate.
    """

    def __init__(
        self,
        make_policy: Callable[[server_events.Session], smtp_policy.SessionPolicy],
        *,
        features: server_events.Features,
        failed: Callable[[Exception], None],
        limits: smtp_session.ListenerLimits | None = None,
        spool: content_spool.ContentSpool | None = None,
        tls: Callable[[], ssl.SSLContext] | None = None,
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

        def make_connection() -> asyncio.Protocol:
            if implicit_tls and tls is not None:
                return smtp_tls_accept.TlsAccept(shared, tls)
            return smtp_session.SmtpSession(shared)

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
