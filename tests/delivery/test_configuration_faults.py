"""A fault of this installation costs no mail: it waits outside the retry schedule, and goes out once it is mended."""

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme

from postroad.keys import encryption
from postroad.mail.signing import domain_keys
from postroad.model.delivery import adaptive_rate
from postroad.services.messages import lookup as messages
from tests import aiosmtpd_server, smtp_peers
from tests.delivery import engine_harness, postfix_server

CONFIGURATION = ("retry", "ours", "configuration")
# Longer than any delay of the schedule, which has two.
LATER = 400


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe soon: provider queues and breakers use the time of this machine."""
    monkeypatch.setattr(adaptive_rate, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(adaptive_rate, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(adaptive_rate, "FIRST_OPEN_SECONDS", 0.01)
    monkeypatch.setattr(adaptive_rate, "MAX_OPEN_SECONDS", 0.05)


def upstream(port: int, **fields: Any) -> list[dict[str, object]]:
    return [{"name": "relay", "host": "127.0.0.1", "port": port, "tls": "off", **fields}]


def faults(harness: engine_harness.EngineHarness) -> list[str]:
    """What the log warned of."""
    return [entry["error"] for entry in harness.log if entry["event"] == "configuration_fault"]


async def fail_often(harness: engine_harness.EngineHarness, message_id: str, *, times: int = 4) -> engine_harness.Seen:
    """More attempts than the schedule has, all of them our own fault. The next one waits for `pass_seconds`."""
    for attempts in range(1, times + 1):
        if attempts > 1:
            harness.pass_seconds(LATER)
        seen = await harness.settle(message_id, attempts=attempts)
        assert (seen.recipient.status, seen.recipient.attempt_count) == ("deferred", attempts)
        assert {(one.verdict, one.fault, one.reason) for one in seen.attempts} == {CONFIGURATION}
        assert 0 < await harness.due_in(message_id) <= 330
    return await harness.see(message_id)


async def test_mail_waits_for_the_right_password_at_an_upstream(url: str) -> None:
    mailbox, passwords = aiosmtpd_server.Mailbox(), {"shop": "another"}
    async with aiosmtpd_server.serving(mailbox, name="relay.example", tls=None, passwords=passwords) as port:
        login = {"username": "shop", "password": "s3cret"}
        async with engine_harness.running_engine(url, port=25, upstreams=upstream(port, **login)) as harness:
            message_id = await harness.send()
            seen = await fail_often(harness, message_id)
            assert (seen.attempts[0].stage, seen.attempts[0].smtp_code) == ("auth", 535)
            assert (await harness.credits(), mailbox.taken) == ((0, 1), [])
            passwords["shop"] = "s3cret"
            harness.pass_seconds(LATER)
            seen = await harness.settle(message_id, attempts=5)
            assert seen.recipient.status == "delivered"
            assert await harness.credits() == (1, 0)
            assert set(faults(harness)) == {"535 5.7.8 Authentication credentials invalid"}
            assert harness.ctx.metrics.attempts.values[CONFIGURATION] == 4
            assert "s3cret" not in str(harness.log)
    assert len(mailbox.taken) == 1


@pytest.mark.skipif(postfix_server.missing() is not None, reason=str(postfix_server.missing()))
async def test_postfix_with_sasl_takes_mail_once_the_password_is_right(url: str) -> None:
    passwords = {"shop": "another"}
    login = {"username": "shop", "password": "s3cret", "host": "localhost", "tls": "starttls"}
    async with postfix_server.passwords_served(passwords) as sasl_port:
        with postfix_server.running("localhost", sasl_port=sasl_port) as postfix:
            relays = upstream(postfix.port, ca_file=postfix.ca_file, **login)
            async with engine_harness.running_engine(url, port=25, upstreams=relays) as harness:
                message_id = await harness.send()
                seen = await fail_often(harness, message_id, times=3)
                assert (seen.attempts[0].stage, seen.attempts[0].smtp_code) == ("auth", 535)
                passwords["shop"] = "s3cret"
                harness.pass_seconds(LATER)
                seen = await harness.settle(message_id, attempts=4)
                assert seen.recipient.status == "delivered"
                assert seen.attempts[-1].tls == "TLSv1.3 verified"
                raw = await messages.raw(harness.ctx, harness.account_id, message_id)
            assert postfix.contents() == [raw]


async def test_mail_waits_where_an_upstream_demands_a_login_that_is_not_set(url: str) -> None:
    mailbox, passwords = aiosmtpd_server.Mailbox(), {"shop": "s3cret"}
    async with (
        aiosmtpd_server.serving(mailbox, name="relay.example", tls=None, passwords=passwords) as port,
        engine_harness.running_engine(url, port=25, upstreams=upstream(port)) as harness,
    ):
        seen = await fail_often(harness, await harness.send())
        assert (seen.attempts[0].stage, seen.attempts[0].smtp_code) == ("mail", 530)


@pytest.mark.parametrize("tls", ["starttls", "tls"])
async def test_mail_waits_for_a_certificate_that_can_be_verified(tls: str, url: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    mailbox = aiosmtpd_server.Mailbox()
    async with aiosmtpd_server.serving(mailbox, name="relay", tls=context, implicit_tls=tls == "tls") as port:
        relays = upstream(port, tls=tls)
        async with engine_harness.running_engine(url, port=25, upstreams=relays) as harness:
            message_id = await harness.send()
            seen = await fail_often(harness, message_id)
            assert seen.attempts[0].response.startswith("the TLS handshake failed: ")
        relays = upstream(port, tls=tls, ca_file=str(tmp_path / "authority.pem"))
        async with engine_harness.running_engine(
            url, port=25, upstreams=relays, clock=harness.clock, account_id=harness.account_id
        ) as harness:
            harness.pass_seconds(LATER)
            seen = await harness.settle(message_id, attempts=5)
            assert (seen.recipient.status, seen.attempts[-1].tls) == ("delivered", "TLSv1.3 verified")


async def test_mail_waits_for_the_key_that_opens_the_dkim_key(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise encryption.DecryptionError("the secret of example.com cannot be decrypted with this installation's key")

    async with engine_harness.delivering_to(url, sign=True) as (peer, harness):
        with monkeypatch.context() as patched:
            patched.setattr(domain_keys, "_decrypted", fail)
            message_id = await harness.send()
            seen = await fail_often(harness, message_id)
            assert seen.attempts[0].response.startswith("not attempted: the secret of example.com cannot be decrypted")
        harness.pass_seconds(LATER)
        assert (await harness.settle(message_id, attempts=5)).recipient.status == "delivered"
    assert peer.transactions[0].content.startswith(b"DKIM-Signature:")


async def test_the_warning_is_repeated_once_a_minute_and_not_for_every_message(url: str) -> None:
    script = {"MAIL": "530 5.7.0 Authentication required"}
    async with (
        smtp_peers.serving(script) as peer,
        engine_harness.running_engine(url, port=25, upstreams=upstream(peer.port)) as harness,
    ):
        for message_id in [await harness.send() for _ in range(3)]:
            await harness.settle(message_id)
        assert faults(harness) == ["530 5.7.0 Authentication required"]
