"""The submission listeners: one with STARTTLS, one with implicit TLS (RFC 8314), and their certificate.

Both have the same policy and limits; each counts its own connections.
"""

from collections.abc import Callable, Mapping
from typing import Final

from postroad import context
from postroad.concurrency import fairness
from postroad.model.mail import limits
from postroad.network.smtp import content_spool, smtp_server
from postroad.network.tls import server_tls
from postroad.protocol.smtp import server_events
from postroad.services.operations import certificates
from postroad.submission import mail_options, session
from postroad.telemetry import logs

# More in one session are guesses.
MAX_FAILED_LOGINS: Final = 5
# Enough for TLS and AUTH over the slowest network.
LOGIN_SECONDS: Final = 60


def listeners(
    ctx: context.Context,
    *,
    name: str,
    certificate: server_tls.ServerCertificate | None,
    log: logs.Logger,
    spool: content_spool.ContentSpool | None = None,
) -> Mapping[str, smtp_server.SmtpListener]:
    """The listeners whose addresses are configured, by setting key; not started yet."""
    chosen = ctx.settings.submission
    delays = fairness.ResponseDelays()

    def make_policy(smtp_state: server_events.Session) -> session.SubmissionSession:
        return session.SubmissionSession(ctx, smtp_state, name=name, log=log, delays=delays)

    offered: dict[str, smtp_server.SmtpListener] = {}
    if chosen.listen:
        offered["listen"] = _listener(ctx, make_policy, name=name, certificate=certificate, spool=spool, log=log)
    if chosen.tls_listen:
        offered["tls_listen"] = _listener(
            ctx, make_policy, name=name, certificate=certificate, spool=spool, log=log, implicit_tls=True
        )
    return offered


def _listener(
    ctx: context.Context,
    make_policy: Callable[[server_events.Session], session.SubmissionSession],
    *,
    name: str,
    certificate: server_tls.ServerCertificate | None,
    spool: content_spool.ContentSpool | None,
    log: logs.Logger,
    implicit_tls: bool = False,
) -> smtp_server.SmtpListener:
    chosen = ctx.settings.submission

    def failed(problem: Exception) -> None:
        log.error("submission_failed", exc_info=problem)

    return smtp_server.SmtpListener(
        make_policy,
        features=server_events.Features(
            name=name,
            message_octets=limits.MIME_BYTES,
            recipients=limits.UNIQUE_RECIPIENTS,
            bad_logins=MAX_FAILED_LOGINS,
            starttls=certificate is not None and not implicit_tls,
            auth=True,
            auth_without_tls=chosen.auth_without_tls,
            time_keywords=lambda: mail_options.keywords(ctx.clock()),
        ),
        failed=failed,
        limits=smtp_server.ListenerLimits(
            connections=chosen.connections,
            connections_per_address=chosen.connections_per_address,
            login_seconds=LOGIN_SECONDS,
        ),
        spool=spool,
        tls=(lambda: certificate.context) if certificate else None,
        implicit_tls=implicit_tls,
        refresh=certificates.refresher(certificate, listener="submission", log=log),
    )
