"""`postroad upstream test`: what it does with a server that works, and what it says of one that does not."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import aiosmtpd_server, smtp_peers
from tests.cli import cli_runner

MAIL_REFUSED = (
    "Failed at mail: 530 5.7.0 Authentication required. Read the reply. The upstream may require a "
    "verified sender or a login."
)
LOGIN = 'username = "shop"\npassword = "s3cret"\n'


@contextlib.contextmanager
def relay(mailbox: aiosmtpd_server.Mailbox, passwords: dict[str, str]) -> Iterator[int]:
    """A server that demands a login, in a thread of its own: the command runs its own event loop."""
    loop, ended, ports = asyncio.new_event_loop(), asyncio.Event(), list[int]()
    started = threading.Event()

    async def serve() -> None:
        async with aiosmtpd_server.serving(mailbox, name="relay", tls=None, passwords=passwords) as port:
            ports.append(port)
            started.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(cli_runner.TIMEOUT_SECONDS)
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def installed(folder: Path, port: int, more: str = "", *, tls: str = "off") -> cli_runner.Installation:
    installation = cli_runner.Installation.at(folder, url="sqlite:///x.db")
    upstream = f'[[upstreams]]\nname = "relay"\nhost = "127.0.0.1"\nport = {port}\ntls = "{tls}"\n{more}'
    delivery = '[delivery]\nhostname = "mail.example.com"\n'
    installation.file.write_text(installation.file.read_text() + delivery + upstream)
    return installation


def test_an_upstream_that_works_takes_a_message(tmp_path: Path) -> None:
    mailbox = aiosmtpd_server.Mailbox()
    with relay(mailbox, {"shop": "s3cret"}) as port:
        installation = installed(tmp_path, port, LOGIN)
        assert installation.text("upstream", "test", "relay").splitlines() == [
            f"Connected to 127.0.0.1 [127.0.0.1]:{port}, without TLS.",
            "Logged in as shop.",
            "The upstream relay works.",
        ]
        assert mailbox.taken == []
        said = installation.text("upstream", "test", "relay", "--to", "ada@example.net")
    accepted = "A message from postmaster@mail.example.com to ada@example.net was accepted: 250 2.0.0 taken."
    assert said.splitlines()[2] == accepted
    ((recipients, content, _),) = mailbox.taken
    assert recipients == ["ada@example.net"]
    assert b"Subject: Test of an upstream\r\n" in content


def test_a_refused_login_says_what_to_correct_and_not_the_password(tmp_path: Path) -> None:
    with relay(aiosmtpd_server.Mailbox(), {"shop": "another"}) as port:
        result = installed(tmp_path, port, LOGIN).run("upstream", "test", "relay", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["steps"] == [
        {
            "ok": False,
            "found": "Failed at auth: 535 5.7.8 Authentication credentials invalid.",
            "advice": "Correct username and password. They may differ from those of the upstream's website.",
        }
    ]
    assert "s3cret" not in result.output


def test_a_missing_login_is_found_with_a_message(tmp_path: Path) -> None:
    with relay(aiosmtpd_server.Mailbox(), {"shop": "s3cret"}) as port:
        result = installed(tmp_path, port).run("upstream", "test", "relay", "--to", "ada@example.net")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        1,
        [
            "No username is set: no login.",
            MAIL_REFUSED,
            "The upstream relay cannot be used.",
        ],
    )


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_server_without_tls_and_a_closed_port_are_told_apart(tmp_path: Path, tls: str) -> None:
    with relay(aiosmtpd_server.Mailbox(), {"shop": "s3cret"}) as port:
        said = installed(tmp_path, port, LOGIN, tls=tls).run("upstream", "test", "relay").stdout
    assert said.startswith("Failed at starttls: the ")
    assert "The certificate must be for host" in said
    with smtp_peers.refusing_port() as port:
        said = installed(tmp_path, port, LOGIN, tls=tls).run("upstream", "test", "relay").stdout
    refused = f"Failed at connect: connecting to 127.0.0.1 [127.0.0.1]:{port}: connection refused. Check host and port"
    assert said.startswith(refused)


def test_an_unknown_name_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    refused = installed(tmp_path, 25).refusal("upstream", "test", "ses")
    assert refused == "there is no upstream 'ses'; known: relay"
