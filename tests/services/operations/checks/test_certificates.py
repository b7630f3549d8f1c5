"""Certificates and secret files: what is served counts, then the files; one broken set-up each."""

import os
from pathlib import Path

import pytest

from postroad.config import safety
from postroad.services.operations.checks import findings
from tests import smtp_peers
from tests.services.operations.checks import setups


def seen(files: dict[str, str], port: int = 587, *, is_running: bool = False) -> findings.Subject:
    overrides = {"http": {"tls": False}, "tls": files, "submission": {"listen": f"127.0.0.1:{port}"}}
    running = [setups.process(roles=["submission"])] if is_running else []
    return setups.given(None, overrides, store=setups.STORE, running=running)


def ordered(port: int, *, is_running: bool) -> findings.Subject:
    """A host whose only certificate comes by ACME; a proxy serves HTTPS."""
    overrides = {
        "acme": {"names": [setups.NAME]},
        "http": {"base_url": f"https://{setups.NAME}", "tls": False, "trusted_proxies": ["127.0.0.1"]},
        "submission": {"listen": f"127.0.0.1:{port}"},
    }
    running = [setups.process(roles=["submission"])] if is_running else []
    return setups.given(None, overrides, store=setups.STORE, running=running)


@pytest.mark.parametrize(
    "name, days, expected",
    [
        ("mail.example.org", 30.5, ("ok", "submission: the certificate for mail.example.org expires in 30 days", "")),
        ("*.example.org", 21.5, ("ok", "submission: the certificate for *.example.org expires in 21 days", "")),
        (
            "mail.example.org",
            20.5,
            ("warning", "submission: the certificate for mail.example.org expires in 20 days", "renew it"),
        ),
        (
            "mail.example.org",
            2.5,
            ("error", "submission: the certificate for mail.example.org expires in 2 days", "renew it"),
        ),
        (
            "mail.example.org",
            -1,
            ("error", "submission: the certificate for mail.example.org has expired", "renew it"),
        ),
        (
            "www.example.org",
            80,
            (
                "warning",
                "submission: the certificate is for www.example.org, not for mail.example.org",
                "get a certificate for mail.example.org; clients refuse one for another name",
            ),
        ),
    ],
)
async def test_names_and_days_of_a_certificate(
    tmp_path: Path, name: str, days: float, expected: tuple[str, str, str]
) -> None:
    files, _ = setups.certificate(tmp_path, name, days=days)
    assert await setups.told("certificates", seen(files)) == [expected]


async def test_what_the_service_serves_counts_and_a_file_that_it_does_not_use_yet_is_named(tmp_path: Path) -> None:
    _, served = setups.certificate(tmp_path, days=1.5)
    async with smtp_peers.serving(tls=served) as peer:
        files, _ = setups.certificate(tmp_path)
        assert await setups.told("certificates", seen(files, peer.port, is_running=True)) == [
            ("error", "submission: the certificate for mail.example.org expires in 1 day", "renew it"),
            (
                "warning",
                f"submission: the service does not use the certificate in {files['certificate']} yet",
                "it is reloaded within seconds; see the log if this persists",
            ),
        ]


async def test_a_certificate_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    files, _ = setups.certificate(tmp_path)
    (tmp_path / "chain.pem").write_text("half of it")
    ((state, found, advice),) = await setups.told("certificates", seen(files))
    assert (state, found) == (
        "error",
        f"submission: {files['certificate']} contains no certificate in PEM format",
    )
    assert advice == (
        f"renew it, and let this user read {files['certificate']} and {files['key']}; "
        "a running service keeps its old certificate"
    )


async def test_a_certificate_by_acme_is_the_one_that_is_served(tmp_path: Path) -> None:
    _, context = setups.certificate(tmp_path, days=30.5)
    async with smtp_peers.serving(tls=context) as peer, smtp_peers.serving() as plain:
        for port, expected in (
            (peer.port, ("ok", "submission: the certificate for mail.example.org expires in 30 days", "")),
            (
                plain.port,
                (
                    "error",
                    "submission: no certificate for mail.example.org is in use",
                    "'postroad certificate list' shows why it was not obtained",
                ),
            ),
        ):
            assert await setups.told("certificates", ordered(port, is_running=True)) == [expected]
        assert await setups.told("certificates", ordered(peer.port, is_running=False)) == [
            ("skipped", "submission: the service, which obtains the certificate, is not running on this host", "")
        ]


async def test_without_tls_there_is_nothing_to_check() -> None:
    assert await setups.told("certificates", setups.given()) == [("skipped", "no listener has a certificate", "")]
    assert await setups.told("secret_files", setups.given()) == [
        ("skipped", "no setting names a file with a secret", "")
    ]


async def test_a_key_file_that_everybody_can_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, _ = setups.certificate(tmp_path)
    key = files["key"]
    assert await setups.told("secret_files", seen(files)) == [
        ("ok", f"{key}: readable by this user, and not world-readable", "")
    ]
    monkeypatch.setattr(safety, "_is_public", lambda _file: True)
    expected = f"tls.key: every user of this system can read {key}; run 'chmod 600 {key}'"
    assert await setups.told("secret_files", seen(files)) == [("error", expected, "")]


async def test_a_key_file_that_this_user_cannot_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "secret.key"
    overrides = {"security": {"installation_key_file": str(key)}}
    assert await setups.told("secret_files", setups.given(None, overrides)) == [
        (
            "error",
            f"security.installation_key_file: {key} does not exist",
            "create it, readable only by the user of the service",
        )
    ]
    key.touch(mode=0o600)
    monkeypatch.setattr(os, "access", lambda _file, _mode: False)
    assert await setups.told("secret_files", setups.given(None, overrides)) == [
        (
            "error",
            f"security.installation_key_file: this user cannot read {key}",
            "run the checks as the user of the service, or give that user access to the file and its folders",
        )
    ]
