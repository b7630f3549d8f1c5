"""Contexts are made once for each kind, and names are compared as RFC 6125 has it.

What certificates have to show is tested with real handshakes, in test_smtp_connection_tls.py.
"""

import pathlib
import ssl

import pytest
import trustme

from postroad.model.delivery.tls_policy import Mode, TlsPolicy
from postroad.network.tls import client_tls


def test_a_context_is_made_once() -> None:
    assert client_tls.context(verifies=False) is client_tls.context(verifies=False)
    assert client_tls.context(verifies=False) is not client_tls.context(verifies=True)


def test_old_versions_are_never_spoken() -> None:
    assert {client_tls.context(verifies=verifies).minimum_version for verifies in (True, False)} == {
        ssl.TLSVersion.TLSv1_2
    }


def test_a_file_of_authorities_takes_the_place_of_the_systems(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "authority.pem"
    trustme.CA().cert_pem.write_to_path(str(file))
    context = client_tls.context(verifies=True, ca_file=str(file))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.cert_store_stats()["x509_ca"] == 1


class Presented:
    """A finished connection whose certificate has these names."""

    def __init__(self, *names: tuple[str, str]) -> None:
        self._names = names

    def getpeercert(self) -> dict[str, object]:
        return {"subjectAltName": self._names, "subject": ((("commonName", "common.example"),),)}


@pytest.mark.parametrize(
    "pattern, name",
    [
        ("mx.example.org", "mx.example.org"),
        ("MX.example.ORG", "mx.Example.org."),
        ("*.example.org", "mx.example.org"),
    ],
)
def test_a_name_that_the_certificate_covers_is_verified(pattern: str, name: str) -> None:
    presented = Presented(("DNS", "other.example"), ("DNS", pattern))
    assert client_tls.check(presented, TlsPolicy(Mode.VERIFIED), host=name) == "verified"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind, pattern, name",
    [
        ("DNS", "mx.example.org", "mx2.example.org"),
        ("DNS", "*.example.org", "example.org"),
        ("DNS", "*.example.org", "a.mx.example.org"),
        ("DNS", "*.org", "example.org"),
        ("DNS", "m*.example.org", "mx.example.org"),
        ("DNS", "*", "org"),
        ("email", "mx.example.org", "mx.example.org"),
        ("DNS", "other.example", "common.example"),
    ],
)
def test_a_name_that_the_certificate_does_not_cover_is_refused(kind: str, pattern: str, name: str) -> None:
    with pytest.raises(client_tls.CertificateRejected, match=name):
        client_tls.check(Presented((kind, pattern)), TlsPolicy(Mode.VERIFIED), host=name)  # type: ignore[arg-type]
