"""The certificate of each listener. Files are checked once a second, so a renewed one is used without a restart.

Open connections keep the certificate that they started with.
"""

from collections.abc import Callable
from pathlib import Path

from postroad import config
from postroad.network import server_tls
from postroad.telemetry import logs


def load(settings: config.Settings, listener: str) -> server_tls.Certificate | None:
    """The certificate in the files of a listener, if it has any. Raises ConfigError if they cannot be used."""
    section = config.section_of(settings, listener)
    if not section.tls_certificate:
        return None
    try:
        return server_tls.Certificate.load(Path(section.tls_certificate), Path(section.tls_key))
    except server_tls.CertificateError as problem:
        raise config.ConfigError(f"{listener}.tls_certificate: {problem}") from problem


def refresher(
    certificate: server_tls.ServerCertificate | None, *, listener: str, log: logs.Logger
) -> Callable[[], None] | None:
    """A function that takes over a renewed certificate, and logs it."""
    if certificate is None:
        return None
    event = f"{listener}_certificate"

    def refresh() -> None:
        try:
            detail = certificate.refresh()
        except server_tls.CertificateError as problem:
            log.warning(event, detail=f"the old certificate stays in use: {problem}")
        else:
            if detail is not None:
                log.info(event, detail=detail)

    return refresh
