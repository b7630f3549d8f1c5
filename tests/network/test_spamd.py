"""spamd is asked with one request, over TCP or a Unix socket, and whatever it answers is a verdict or a failure."""

import tempfile
from pathlib import Path

import pytest

from postroad.network import spamd
from tests import spamd_server

MESSAGE = b"Subject: x\r\n\r\nBuy now\r\n"


async def test_a_message_is_scored_with_the_rules_behind_it() -> None:
    async with spamd_server.running(spamd_server.SPAM) as (address, requests):
        assert await spamd.check(address, MESSAGE) == spamd_server.VERDICT
    assert requests == [b"REPORT SPAMC/1.5\r\nContent-length: 23\r\n\r\n" + MESSAGE]


async def test_a_unix_socket_does_as_well() -> None:
    ham = b"SPAMD/1.1 0 EX_OK\r\nSpam: False ; -0.1 / 5.0\r\n\r\n"
    # The path of a socket is short.
    with tempfile.TemporaryDirectory() as folder:
        async with spamd_server.running(ham, path=Path(folder, "spamd")) as (address, _):
            assert await spamd.check(address, MESSAGE) == spamd.Verdict(
                is_spam=False, score=-0.1, threshold=5.0, report=""
            )


@pytest.mark.parametrize(
    "answer, detail",
    [
        (b"", "the response is not from spamd"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "the response is not from spamd"),
        (b"SPAMD/1.0 76 Bad header line\r\n\r\n", "spamd responded with error 76"),
        (b"SPAMD/1.1 0 EX_OK\r\n\r\nSpam: True ; 1 / 2", "the response has no score"),
        (b"SPAMD/1.1 0 EX_OK\r\nSpam: True ; nan / inf\r\n\r\n", "the response has no score"),
        (b"x" * 1_000_000, "the response is not from spamd"),
    ],
    ids=["nothing", "another protocol", "error", "no score", "no number", "endless"],
)
async def test_another_answer_is_a_failure(answer: bytes, detail: str) -> None:
    async with spamd_server.running(answer) as (address, _):
        assert await spamd.check(address, MESSAGE) == spamd.Failure(detail)


async def test_nobody_there_is_a_failure(tmp_path: Path) -> None:
    found = await spamd.check(str(tmp_path / "absent"), MESSAGE)
    assert found == spamd.Failure("No such file or directory")


async def test_a_silent_daemon_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spamd, "TIMEOUT", 0.1)
    async with spamd_server.running(None) as (address, _):
        assert await spamd.check(address, MESSAGE) == spamd.Failure("no complete response within 0.1 seconds")
