"""The certificate of each listener. Files are checked once a second, so a renewed one is used without a restart.

Open connections keep the certificate that they started with.
"""

from collections.abc import Callable
from pathlib import Path

from postroad import config
from postroad.model import times
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


def warnings(settings: config.Settings, *, now: int) -> list[str]:
    """The certificates in files that clients refuse at this time."""
    found = []
    for listener in config.LISTENERS:
        file = config.section_of(settings, listener).tls_certificate
        try:
            described = server_tls.describe(Path(file).read_bytes()) if file else None
        except (OSError, ValueError):
            continue  # `load` reports it
        if described is None:
            continue
        about = f"{listener}.tls_certificate: the certificate in {file}"
        if described.expires_at * times.SECOND <= now:
            found.append(f"{about} expired on {_day(described.expires_at)}; renew it")
        elif described.valid_from * times.SECOND > now:
            found.append(f"{about} is not valid before {_day(described.valid_from)}; check the clock of this host")
    return found


def _day(seconds: int) -> str:
    return times.to_wire(seconds * times.SECOND)[:10]


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
