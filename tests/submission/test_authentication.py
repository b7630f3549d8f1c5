"""AUTH at the submission listener: both mechanisms, slowed together with HTTP, and never a lie about a password."""

import re

import aiosmtplib
import pytest

from postroad import errors
from postroad.services.people import authentication
from tests.contexts import Clock
from tests.services.people.test_schemes import basic
from tests.submission.submission_server import SubmissionServer, send

HERE = "127.0.0.1"
WRONG = "not the password"


async def refusal(client: aiosmtplib.SMTP, username: str, password: str) -> str:
    with pytest.raises(aiosmtplib.SMTPAuthenticationError) as refused:
        await client.auth_plain(username, password)
    return f"{refused.value.code} {refused.value.message}"


@pytest.mark.parametrize("mechanism", ["auth_plain", "auth_login"])
async def test_either_mechanism_lets_in(server: SubmissionServer, mechanism: str) -> None:
    async with server.client(log_in=False) as client:
        reply = await getattr(client, mechanism)(*server.login)
        assert (reply.code, reply.message[:5]) == (235, "2.7.0")
        await send(client)
    (line,) = server.logged("AUTH")
    assert (line["level"], line["reply"], line["credential_id"]) == ("info", "235 2.7.0", server.credential.id)


@pytest.mark.parametrize("mechanism", ["auth_plain", "auth_login"])
async def test_a_wrong_password_is_refused_and_may_be_mended(server: SubmissionServer, mechanism: str) -> None:
    async with server.client(log_in=False) as client:
        with pytest.raises(aiosmtplib.SMTPAuthenticationError) as refused:
            await getattr(client, mechanism)(server.credential.username, WRONG)
        assert refused.value.code == 535
        reported = r"5\.7\.8 unauthorized: wrong username or password, .+ \((req_\w+)\)"
        found = re.fullmatch(reported, refused.value.message)
        assert found is not None
        assert [line["request_id"] for line in server.logged("AUTH")] == [found[1]]
        await client.login(*server.login)
        await send(client)
    assert WRONG not in str(server.lines.kept)


async def test_failures_over_http_throttle_logins_here_which_are_refused_temporarily(
    server: SubmissionServer, clock: Clock
) -> None:
    for _ in range(5):
        with pytest.raises(errors.Unauthorized):
            await authentication.authenticate(server.ctx, basic(server.credential.username, WRONG), client_address=HERE)
    async with server.client(log_in=False) as client:
        reported = await refusal(client, *server.login)
        assert reported.startswith("451 4.7.1 rate_limited: ")
        clock.pass_seconds(60)
        await client.login(*server.login)
    # Who is slowed down fills no log.
    assert [(line["code"], line["level"]) for line in server.logged("AUTH")] == [
        ("rate_limited", "debug"),
        (None, "info"),
    ]


async def test_a_store_that_is_away_calls_no_password_wrong(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_arguments: object, **_named: object) -> None:
        raise errors.ServiceUnavailable("the database cannot be reached") from OSError("no route to db:5432")

    monkeypatch.setattr(authentication, "authenticate_password", away)
    async with server.client(log_in=False) as client:
        reported = await refusal(client, *server.login)
    assert reported.startswith("421 4.3.2 service_unavailable: ")
    assert [line["cause"] for line in server.lines.kept if line["event"] == "service_unavailable"] == [
        "OSError: no route to db:5432"
    ]


async def test_a_bug_calls_no_password_wrong_and_logs_none(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_arguments: object, **_named: object) -> None:
        raise LookupError("a bug")

    monkeypatch.setattr(authentication, "authenticate_password", fail)
    async with server.client(log_in=False) as client:
        reported = await refusal(client, *server.login)
    assert reported.startswith("451 4.3.0 internal_error: ")
    (line,) = [line for line in server.lines.kept if line["event"] == "request_failed"]
    assert line["verb"] == "AUTH"
    assert server.password not in str(server.lines.kept)
