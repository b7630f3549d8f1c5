"""Certificates and keys: they can be read, are for the right name, and last.

What a running listener serves counts, wherever its certificate comes from; without one, the files do.
"""

import asyncio
import contextlib
import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib import parse

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from postroad import config
from postroad.model.units import times
from postroad.network import probe
from postroad.network.tls import client_tls, server_tls
from postroad.services.operations.checks import connections, findings

# Renewal begins a third of the lifetime before the end, which is 30 days of 90; two failed attempts later is a warning.
WARNING_DAYS: Final = 21
ERROR_DAYS: Final = 3


async def certificates(given: findings.Subject) -> Sequence[findings.Finding]:
    used = config.tls_sections(given.settings)
    if not used:
        return [findings.skipped("no listener has a certificate")]
    found = await asyncio.gather(*(_section(given, section) for section in used))
    told = [finding for several in found for finding in several]
    if missing := [section for section, several in zip(used, found, strict=True) if not several]:
        names = ", ".join(given.settings.acme.names)
        told.append(
            findings.error(
                f"{', '.join(missing)}: no certificate for {names} is in use",
                "'postroad certificate list' shows why it was not obtained",
            )
        )
    return told


async def _section(given: findings.Subject, section: str) -> list[findings.Finding]:
    """The findings of one section, of which the listeners share a certificate; none if ACME has not given it one."""
    served = await _served(given, section)
    if given.settings.acme.names:
        return _ordered(given, section, served)
    file, key = Path(given.settings.tls.certificate), Path(given.settings.tls.key)
    try:
        await asyncio.to_thread(server_tls.Certificate.load, file, key)
        chain = x509.load_pem_x509_certificates(await asyncio.to_thread(file.read_bytes))
        on_disk = chain[0].public_bytes(serialization.Encoding.DER)
    except server_tls.CertificateError as problem:
        return [
            findings.error(
                f"{section}: {problem}",
                f"renew it, and let this user read {file} and {key}; a running service keeps its old certificate",
            )
        ]
    except OSError as problem:
        return [findings.error(f"{section}: {file} cannot be read: {problem.strerror}", "let this user read it")]
    shown = x509.load_der_x509_certificate(served or on_disk)
    problems = _evaluate(given, section, shown)
    if served is not None and served != on_disk:
        problems.append(
            findings.warning(
                f"{section}: the service does not use the certificate in {file} yet",
                "it is reloaded within seconds; see the log if this persists",
            )
        )
    return problems or [_fine(given, section, shown)]


def _ordered(given: findings.Subject, section: str, served: bytes | None) -> list[findings.Finding]:
    """The findings of a section with a certificate by ACME, of which only running listeners have a copy to look at."""
    if served is not None:
        shown = x509.load_der_x509_certificate(served)
        return _evaluate(given, section, shown) or [_fine(given, section, shown)]
    is_running = given.store is not None and any(
        listener.section == section for listener, _ in connections.expected(given)
    )
    if not is_running:
        return [findings.skipped(f"{section}: the service, which obtains the certificate, is not running on this host")]
    return []


def _fine(given: findings.Subject, section: str, certificate: x509.Certificate) -> findings.Finding:
    return findings.ok(
        f"{section}: the certificate for {_listed(certificate)} expires in {_days(given, certificate)} days"
    )


async def _served(given: findings.Subject, section: str) -> bytes | None:
    """The certificate that a listener of the section serves; None if none answers."""
    for listener, where in connections.expected(given):
        if listener.section == section:
            with contextlib.suppress(probe.ProbeFailed):
                if listener.protocol is not connections.Protocol.SMTP:
                    return await probe.certificate(where, server_name=given.hostname)
                name = given.hostname
                return (await probe.smtp(where, host=name, hello_name=name, starttls=True)).certificate
    return None


def _evaluate(given: findings.Subject, section: str, certificate: x509.Certificate) -> list[findings.Finding]:
    name, days = _expected_name(given, section), _days(given, certificate)
    problems = []
    if not any(client_tls.covers(pattern, name) for pattern in _names(certificate)):
        problems.append(
            findings.warning(
                f"{section}: the certificate is for {_listed(certificate)}, not for {name}",
                f"get a certificate for {name}; clients refuse one for another name",
            )
        )
    if days < WARNING_DAYS:
        make = findings.error if days < ERROR_DAYS else findings.warning
        ends = "has expired" if days < 0 else f"expires in {days} {'day' if days == 1 else 'days'}"
        problems.append(make(f"{section}: the certificate for {_listed(certificate)} {ends}", "renew it"))
    return problems


def _expected_name(given: findings.Subject, section: str) -> str:
    url = given.settings.http.base_url
    return (parse.urlsplit(url).hostname if section == "http" and url else None) or given.hostname


def _names(certificate: x509.Certificate) -> Sequence[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return found.get_values_for_type(x509.DNSName)


def _listed(certificate: x509.Certificate) -> str:
    return ", ".join(_names(certificate)) or "no name"


def _days(given: findings.Subject, certificate: x509.Certificate) -> int:
    now = dt.datetime.fromtimestamp(given.clock() / times.SECOND, dt.UTC)
    return (certificate.not_valid_after_utc - now).days


async def secret_files(given: findings.Subject) -> Sequence[findings.Finding]:
    """The files with secrets can be read by this user and are not world-readable."""
    files = config.secret_files(given.settings)
    if not files:
        return [findings.skipped("no setting names a file with a secret")]
    problems = [_unreadable(setting, file) for setting, file in files if not os.access(file, os.R_OK)]
    try:
        config.check_secret_files(given.settings)
    except config.ConfigError as problem:
        problems.append(findings.error(str(problem)))
    return problems or [
        findings.ok(f"{', '.join(str(file) for _, file in files)}: readable by this user, and not world-readable")
    ]


def _unreadable(setting: str, file: Path) -> findings.Finding:
    try:
        file.stat()
    except FileNotFoundError:
        return findings.error(
            f"{setting}: {file} does not exist", "create it, readable only by the user of the service"
        )
    except OSError:
        pass
    return findings.error(
        f"{setting}: this user cannot read {file}",
        "run the checks as the user of the service, or give that user access to the file and its folders",
    )
