"""A mail server that is not there is named with its remedy, and each one brings its own users and resolver."""

import pathlib

import pytest

from benchmarks.peers import debian, haraka, mail_servers, postfix


@pytest.fixture
def nothing_unpacked(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "ROOTS", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)


@pytest.mark.usefixtures("nothing_unpacked")
def test_one_that_is_not_unpacked_is_a_gap_with_its_remedy() -> None:
    remedy = "is not unpacked: python -m benchmarks.peers.debian"
    assert mail_servers.gaps(["exim", "opensmtpd", "chasquid"]) == {
        "exim": f"Exim was not measured. exim4-daemon-light {remedy}",
        "opensmtpd": f"OpenSMTPD was not measured. opensmtpd {remedy}",
        "chasquid": f"chasquid was not measured. chasquid {remedy}",
    }


def test_without_the_reference_there_is_nothing_to_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postfix, "missing", lambda: "Postfix is not installed: apt-get install postfix")
    monkeypatch.setattr(haraka, "missing", lambda: None)
    gap = "there is nothing to compare with. Postfix is not installed: apt-get install postfix"
    assert mail_servers.gaps(["postfix", "haraka"]) == {"postfix": gap}
