"""A mail server that is not there is named with its remedy, and each one brings its own users and resolver."""

import pathlib
import subprocess
import sys

import pytest

from benchmarks.peers import debian, haraka, mail_servers, postfix

ROOT = pathlib.Path(mail_servers.__file__).parents[2]


@pytest.fixture
def nothing_unpacked(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "ROOTS", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)


def test_a_row_says_what_a_peer_does_not_sync() -> None:
    assert {name: peer.NAME for name, peer in mail_servers.ALL.items()} == {
        "postfix": "Postfix",
        "haraka": "Haraka (files synced, not the folder)",
        "exim": "Exim",
        "opensmtpd": "OpenSMTPD (nothing synced)",
        "chasquid": "chasquid (files synced, not the folder)",
    }


@pytest.mark.parametrize("module", ["accept", "submission", "deliver"])
def test_each_benchmark_of_rates_measures_all_of_them(module: str) -> None:
    command = [sys.executable, "-m", f"benchmarks.{module}", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    peers = done.stdout.partition("--peers {")[2].partition("}")[0].split(",")
    assert set(mail_servers.ALL) <= {peer.strip() for peer in peers}


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


@pytest.mark.usefixtures("nothing_unpacked")
def test_only_root_can_start_one(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chasquid").mkdir()
    (tmp_path / "chasquid" / "version").write_text("1.19.0-1\n")
    assert mail_servers.gaps(["chasquid"]) == {}
    assert mail_servers.facts(["chasquid"]) == {"chasquid": "1.19.0-1 (Debian forky)"}
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert mail_servers.gaps(["chasquid"]) == {"chasquid": "chasquid was not measured. chasquid starts only as root"}


def test_a_round_brings_its_own_users_and_resolver(tmp_path: pathlib.Path) -> None:
    debian.prepare(tmp_path / "round", users=["opensmtpd", "opensmtpq"], name_server="127.53.0.1")
    etc = tmp_path / "round" / "etc"
    assert (tmp_path / "round" / "var").is_dir()
    assert (etc / "resolv.conf").read_text() == "nameserver 127.53.0.1\n"
    assert (etc / "passwd").read_text().splitlines()[2:] == [
        "opensmtpd:x:64000:64000::/var/empty:/bin/false",
        "opensmtpq:x:64001:64001::/var/empty:/bin/false",
    ]
    assert (etc / "group").read_text().splitlines()[2:] == ["opensmtpd:x:64000:", "opensmtpq:x:64001:"]
