"""TLS towards destinations: a context for each kind of policy, and checks of the certificate after the handshake.

The handshake proves possession of the key and, where a policy requires it, the chain (`context`). `check` proves the
rest on the finished connection: the name for MTA-STS (RFC 8461 section 4.1), the TLSA records for DANE (RFC 7672
section 3). Opportunistic TLS accepts any certificate: it protects against passive attackers (RFC 7435).
"""

import datetime as dt
import functools
import hashlib
import hmac
import ssl
from collections.abc import Iterable
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509 import verification

from postroad.model.delivery import tls_policy
from postroad.protocol.reports import tls_report

_FULL_CERTIFICATE: Final = 0
_DIGESTS: Final = {1: hashlib.sha256, 2: hashlib.sha512}
# X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL.
_CERTIFICATE_EXPIRED: Final = 10
# A chain has two to four certificates; each costs a parse.
_MAX_CHAIN: Final = 10


class CertificateRejected(Exception):
    """The certificate does not show what the policy asks for; the text says what is missing."""

    def __init__(self, detail: str, failure: tls_report.FailureType) -> None:
        super().__init__(detail)
        self.failure = failure


@functools.lru_cache(maxsize=8)  # making one reads the system's authorities, which takes milliseconds
def context(*, verifies: bool, ca_file: str | None = None) -> ssl.SSLContext:
    """The settings of a handshake; `ca_file` takes the place of the system's authorities."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2  # RFC 8996
    made.check_hostname = False  # names are checked by `check`, against those of the policy
    if not verifies:
        made.verify_mode = ssl.CERT_NONE
    elif ca_file is None:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    else:
        made.load_verify_locations(cafile=ca_file)
    return made


def check(connection: ssl.SSLObject, policy: tls_policy.TlsPolicy, *, host: str) -> str:
    """What the certificate was checked for: `verified`, `DANE` or nothing. Raises Untrusted when it falls short."""
    names = policy.names or (host,)
    if policy.mode is tls_policy.Mode.VERIFIED:
        _check_names(connection.getpeercert() or {}, names)
        return "verified"
    if policy.mode is not tls_policy.Mode.DANE:
        return ""
    usable = [record for record in policy.tlsa if record.is_usable]
    if not usable:
        return ""  # RFC 7672 section 2.2: TLS is still mandatory, but there is nothing to compare with
    try:
        certificates = [x509.load_der_x509_certificate(der) for der in chain(connection)[:_MAX_CHAIN]]
        matches = bool(certificates) and any(_matches(record, certificates, names) for record in usable)
    except ValueError as problem:
        detail = f"the destination's certificate cannot be read: {problem}"
        raise CertificateRejected(detail, tls_report.FailureType.VALIDATION_FAILURE) from None
    if not matches:
        detail = "the destination's certificate matches none of its TLSA records"
        raise CertificateRejected(detail, tls_report.FailureType.CERTIFICATE_NOT_TRUSTED)
    return "DANE"


def failure_of(problem: BaseException) -> tls_report.FailureType:
    if not isinstance(problem, ssl.SSLCertVerificationError):
        return tls_report.FailureType.VALIDATION_FAILURE
    if problem.verify_code == _CERTIFICATE_EXPIRED:
        return tls_report.FailureType.CERTIFICATE_EXPIRED
    return tls_report.FailureType.CERTIFICATE_NOT_TRUSTED


def chain(connection: ssl.SSLObject) -> list[bytes]:
    """The certificates that the peer sent, its own first, in DER."""
    raw: Any = getattr(connection, "_sslobj", None)
    if hasattr(connection, "get_unverified_chain"):  # Python 3.13
        raw = connection
    return [
        certificate if isinstance(certificate, bytes) else ssl.PEM_cert_to_DER_cert(certificate.public_bytes())
        for certificate in raw.get_unverified_chain() or ()
    ]


def _check_names(certificate: Any, names: Iterable[str]) -> None:  # noqa: ANN401 - the dictionary of getpeercert
    patterns = [value for kind, value in certificate.get("subjectAltName", ()) if kind in {"DNS", "IP Address"}]
    if not any(covers(pattern, name) for pattern in patterns for name in names):
        detail = f"the destination's certificate is not for {' or '.join(names)}"
        raise CertificateRejected(detail, tls_report.FailureType.CERTIFICATE_HOST_MISMATCH)


def covers(pattern: str, name: str) -> bool:
    """Whether a name in a certificate is for a host (RFC 6125 section 6.4), ignoring case; a star is one label."""
    pattern, name = pattern.lower().rstrip("."), name.lower().rstrip(".")
    if pattern.startswith("*."):
        label, _, rest = name.partition(".")
        return bool(label) and rest == pattern[2:] and "." in rest
    return pattern == name


def _matches(record: tls_policy.Tlsa, certificates: list[x509.Certificate], names: Iterable[str]) -> bool:
    if record.usage == tls_policy.DANE_EE:
        # RFC 7672 section 3.1.1: names and dates are ignored; the record identifies the key.
        return _is_described(record, certificates[0])
    anchors = [certificate for certificate in certificates[1:] if _is_described(record, certificate)]
    return any(_leads_to(anchor, certificates, name) for anchor in anchors for name in names)


def _is_described(record: tls_policy.Tlsa, certificate: x509.Certificate) -> bool:
    if record.selector == _FULL_CERTIFICATE:
        data = certificate.public_bytes(serialization.Encoding.DER)
    else:
        data = certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    digest = _DIGESTS.get(record.matching_type)
    return hmac.compare_digest(digest(data).digest() if digest is not None else data, record.data)


def _leads_to(anchor: x509.Certificate, certificates: list[x509.Certificate], name: str) -> bool:
    """RFC 7672 section 3.1.2: the chain must lead to the anchor now, and the certificate be for the name."""
    authorities = verification.ExtensionPolicy.permit_all().require_present(
        x509.BasicConstraints, verification.Criticality.AGNOSTIC, _require_authority
    )
    servers = verification.ExtensionPolicy.permit_all().require_present(
        x509.SubjectAlternativeName, verification.Criticality.AGNOSTIC, None
    )
    # The rules of browsers for extensions are stricter than what private authorities issue; DANE asks for less.
    builder = (
        verification.PolicyBuilder()
        .store(verification.Store([anchor]))
        .time(dt.datetime.now(dt.UTC))
        .extension_policies(ca_policy=authorities, ee_policy=servers)
    )
    try:
        builder.build_server_verifier(x509.DNSName(name.rstrip("."))).verify(certificates[0], certificates[1:])
    except (verification.VerificationError, ValueError):
        return False
    return True


def _require_authority(policy: object, certificate: object, extension: x509.BasicConstraints) -> None:  # noqa: ARG001
    if not extension.ca:
        raise ValueError("an issuer that is not a certificate authority")
