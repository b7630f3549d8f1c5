"""Servers that are not ours take our mail: aiosmtpd, which knows no PIPELINING, and a real Postfix, which does."""

import contextlib
import pathlib
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trustme

from benchmarks.peers import postfix
from postroad.model.delivery.tls_policy import Mode, TlsPolicy
from postroad.network.smtp import smtp_connection
from postroad.network.smtp.smtp_connection import Destination, Timeouts
from postroad.protocol.smtp import authentication, values
from postroad.protocol.smtp.values import Stage
from tests import aiosmtpd_server

LONG_TIMEOUTS = Timeouts(connect=20, reply=20, content=20)
HOST = "mx.example.org"
CONTENT = b"Subject: x\r\n\r\n.\r\n..\r\n.leading dots\r\n" + b"x" * 70 + b"\r\n"
ENVELOPE = values.MailTransaction("a@example.com", ("ada@example.org", "bob@example.org"), (CONTENT,))


@contextlib.asynccontextmanager
async def connected(
    port: int, policy: TlsPolicy, ca_file: str | None = None, **login: Any
) -> AsyncIterator[smtp_connection.SmtpConnection]:
    destination = Destination(HOST, "127.0.0.1", port, policy, **login)
    connection = await smtp_connection.connect(
        destination, hello_name="me.example", timeouts=LONG_TIMEOUTS, ca_file=ca_file
    )
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize("mode, tls", [(Mode.PLAIN, ""), (Mode.VERIFIED, "TLSv1.3 verified")])
async def test_aiosmtpd_takes_our_mail(mode: Mode, tls: str, tmp_path: pathlib.Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    mailbox = aiosmtpd_server.Mailbox()
    async with (
        aiosmtpd_server.serving(mailbox, name=HOST, tls=context) as port,
        connected(port, TlsPolicy(mode), str(tmp_path / "authority.pem")) as connection,
    ):
        assert connection.tls == tls
        for _ in range(2):
            taken, refused = await connection.deliver(ENVELOPE)
            assert (taken.stage, taken.reply) == (Stage.CONTENT, values.Reply(250, "taken", "2.0.0"))
            assert (refused.stage, refused.reply) == (Stage.RECIPIENT, values.Reply(550, "not for bob", "5.7.1"))
    assert mailbox.taken == [(["ada@example.org"], CONTENT, bool(tls))] * 2


@pytest.mark.parametrize(
    "mode, implicit_tls", [(Mode.PLAIN, False), (Mode.VERIFIED, False), (Mode.VERIFIED, True)], ids=str
)
async def test_aiosmtpd_takes_our_mail_after_a_login(mode: Mode, implicit_tls: bool, tmp_path: pathlib.Path) -> None:  # noqa: FBT001
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    mailbox, passwords = aiosmtpd_server.Mailbox(), {"shop": "s3cret"}
    tls = None if mode is Mode.PLAIN else context
    async with aiosmtpd_server.serving(
        mailbox, name=HOST, tls=tls, implicit_tls=implicit_tls, passwords=passwords
    ) as port:

        async def deliver(password: str) -> values.RecipientResult:
            login = {"implicit_tls": implicit_tls, "credentials": authentication.Credentials("shop", password)}
            async with connected(port, TlsPolicy(mode), str(tmp_path / "authority.pem"), **login) as connection:
                return (await connection.deliver(ENVELOPE))[0]

        assert (await deliver("s3cret")).reply == values.Reply(250, "taken", "2.0.0")
        with pytest.raises(smtp_connection.ConnectFailed) as caught:
            await deliver("wrong")
    result = caught.value.result
    assert (result.stage, result.cause) == (Stage.AUTH, values.Cause.CONFIGURATION)
    assert result.reply == values.Reply(535, "Authentication credentials invalid", "5.7.8")
    assert [is_encrypted for _, _, is_encrypted in mailbox.taken] == [mode is Mode.VERIFIED and not implicit_tls]


async def test_a_server_that_begins_without_tls_fails_the_handshake() -> None:
    async with aiosmtpd_server.serving(aiosmtpd_server.Mailbox(), name=HOST, tls=None) as port:
        with pytest.raises(smtp_connection.ConnectFailed) as caught:
            async with connected(port, TlsPolicy(Mode.VERIFIED), implicit_tls=True):
                pass
    assert (caught.value.result.stage, caught.value.result.cause) == (Stage.STARTTLS, values.Cause.TLS_FAILED)


@pytest.fixture
def real_postfix() -> Iterator[postfix.Postfix]:
    missing = postfix.missing()
    if missing is not None:
        pytest.skip(missing)
    # Postfix works as a user of its own, who may not enter pytest's folders.
    with tempfile.TemporaryDirectory(prefix="postroad-postfix-") as folder:
        pathlib.Path(folder).chmod(0o755)
        with postfix.running(pathlib.Path(folder, "instance")) as running:
            yield running


async def test_postfix_takes_our_mail(real_postfix: postfix.Postfix) -> None:
    recipients = tuple(f"user{number}@example.org" for number in range(20))
    async with connected(real_postfix.port, TlsPolicy(Mode.OPPORTUNISTIC)) as connection:
        for _ in range(3):
            results = await connection.deliver(values.MailTransaction("", recipients, (CONTENT, b"x" * 200_000)))
            assert {(result.stage, result.reply.code) for result in results if result.reply} == {(Stage.CONTENT, 250)}
            assert len(results) == 20
        refused = await connection.deliver(values.MailTransaction("", ("nobody@",), (CONTENT,)))
        assert refused[0].permanent
    assert real_postfix.stored() == 3
