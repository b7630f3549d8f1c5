"""Security cases F4, F5, F6, F12 and F13 (with E12): who may send which command, and when, at the SMTP listener.

Through the whole service, on real sockets; failures are counted together with those over HTTP. `N` are neighbours of
the written cases.
"""

import asyncio
import base64
import re

import pytest

from tests.network import recording_listener
from tests.security.whole_service import BEGIN, MESSAGE, WAYS, WholeService, hand_over, plain

WRONG = "not the password"
ENCRYPTED_ONLY = [{"auth_without_tls": False}]


def encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())


async def code(connection: recording_listener.Connection, line: bytes) -> str:
    """The code of the reply to one line."""
    (reply,) = await connection.ask(line)
    return reply[:3].decode()


# F4: the order of things.


@pytest.mark.parametrize("service", ENCRYPTED_ONLY, indirect=True)
async def test_f4_auth_before_tls_is_refused_and_tries_no_password(service: WholeService) -> None:
    """F4: AUTH before TLS: 538, also with the right password, which is then not asked for; 530 to MAIL."""
    async with service.connect(log_in=False) as connection:
        for line in (plain("", *service.login), b"AUTH PLAIN\r\n", b"AUTH LOGIN\r\n", b"AUTH LOGIN YQ==\r\n"):
            assert await code(connection, line) == "538"
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
        await service.secure(connection)
        assert await code(connection, plain("", *service.login)) == "235"
        await connection.ask(BEGIN + b"DATA\r\n", replies=3)
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert service.ctx.metrics.submission_logins.values == {("accepted",): 1}
    assert len(await service.settled()) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_f4_mail_before_auth_auth_twice_and_auth_inside_a_transaction_are_refused(
    service: WholeService, way: str
) -> None:
    """F4: MAIL before AUTH: 530. AUTH twice: 503. AUTH inside a transaction: 503, and the transaction lives."""
    login = plain("", *service.login)
    async with service.connect(way, log_in=False) as connection:
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
        assert await code(connection, login) == "235"
        assert await code(connection, login) == "503"
        assert await code(connection, b"AUTH LOGIN\r\n") == "503"
        await connection.ask(b"MAIL FROM:<shop@example.com>\r\n")
        assert await code(connection, login) == "503"
        await connection.ask(b"RCPT TO:<ada@example.net>\r\n")
        assert await code(connection, login) == "503"
        await connection.ask(b"DATA\r\n")
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert len(await service.settled()) == 1


async def test_n_what_was_proven_in_the_clear_is_void_under_tls(service: WholeService) -> None:
    """N of F4: STARTTLS makes a session begin anew (RFC 3207 section 4.2): it is logged in no more."""
    async with service.connect() as connection:
        await service.secure(connection)
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
    assert await service.settled() == []


@pytest.mark.parametrize("service", ENCRYPTED_ONLY, indirect=True)
async def test_n_nothing_that_came_behind_starttls_in_the_clear_is_obeyed(service: WholeService) -> None:
    """N of F4: commands injected behind STARTTLS end the session; none is taken for one that came under TLS."""
    async with service.connect(log_in=False) as connection:
        await connection.send(b"STARTTLS\r\n" + plain("", *service.login) + BEGIN)
        assert re.fullmatch(rb"421 4\.7\.0 [^\r]+\r\n", await connection.rest())
    assert service.ctx.metrics.submission_logins.values == {}


# F5: what is no login.


def broken_logins(username: str, password: str) -> dict[str, tuple[bytes, str]]:
    """The line that answers a challenge of PLAIN, and the code of the reply."""

    def joined(*parts: str) -> bytes:
        return encoded("\0".join(parts))

    right = joined("", username, password)
    return {
        "the identity of another user": (joined("smtp_somebody", username, password), "535"),
        "the identity of another user, who is no user": (joined("root", username, password), "535"),
        "the identity in another case": (joined(username.upper(), username, password), "535"),
        "no NUL": (joined(f"{username}{password}"), "501"),
        "one NUL": (joined(username, password), "501"),
        "three NULs": (joined("", username, password, ""), "501"),
        "a NUL in the password": (joined("", username, f"{password}\0x"), "501"),
        "no base64": (b"this is not base64!", "501"),
        "base64 that is cut off": (right[:-1] if right.endswith(b"=") else right + b"=", "501"),
        "base64 with white space": (right[:8] + b" " + right[8:], "501"),
        "base64 with something behind it": (right.rstrip(b"=") + b"==AAAA", "501"),
        "no UTF-8": (base64.b64encode(b"\0\xff\xfe\0x"), "501"),
        "an empty response": (b"=", "501"),
        "nothing": (b"", "501"),
        "cancelled": (b"*", "501"),
        "a line of 64 KB": (b"A" * 65_536, "501"),
        "a line of 1 MB": (b"A" * 1_048_576, "501"),
        "a bare CR in it": (right[:8] + b"\r" + right[8:], "501"),
        "an empty username": (joined("", "", password), "535"),
        "an empty password": (joined("", username, ""), "535"),
        "a password of 8 KB": (joined("", username, "x" * 8192), "535"),
        "a wrong password": (joined("", username, WRONG), "535"),
    }


async def test_f5_what_is_no_login_is_refused_and_the_session_lives(service: WholeService) -> None:
    """F5: AUTH PLAIN with a foreign identity, missing NULs, bad base64, `=`, `*`, 64 KB: 535 or 501, session alive."""
    for what, (line, expected) in broken_logins(*service.login).items():
        async with service.connect(log_in=False) as connection:
            assert await code(connection, b"AUTH PLAIN\r\n") == "334", what
            assert await code(connection, line + b"\r\n") == expected, what
            assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530", what
            assert await code(connection, plain("", *service.login)) == "235", what
    assert await service.settled() == []


async def test_f5_the_same_in_the_first_line_and_for_login(service: WholeService) -> None:
    """F5: as an initial response, and for each of LOGIN's two lines; one's own identity is fine."""
    username, password = service.login
    async with service.connect(log_in=False) as connection:
        assert await code(connection, plain("smtp_somebody", username, password)) == "535"
        for line in (b"AUTH PLAIN =\r\n", b"AUTH PLAIN *\r\n", b"AUTH PLAIN !\r\n", b"AUTH LOGIN !\r\n"):
            assert await code(connection, line) == "501", line
        assert await code(connection, b"AUTH PLAIN " + b"A" * 65_536 + b"\r\n") == "500"
        assert await code(connection, b"AUTH CRAM-MD5\r\n") == "504"
        assert await code(connection, b"AUTH\r\n") in {"501", "504"}
        for second in (b"*", b"!", b"A" * 65_536):
            assert await code(connection, b"AUTH LOGIN\r\n") == "334"
            assert await code(connection, encoded(username) + b"\r\n") == "334"
            assert await code(connection, second + b"\r\n") == "501"
        assert await code(connection, plain(username, username, password)) == "235"


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_n_names_that_no_store_may_hold_are_wrong_names(service: WholeService) -> None:
    """N of F5: base64 can carry NUL, line breaks and quotes into a name or a password; each is just a wrong one."""
    username, password = service.login
    names = [
        "a\0b",
        "\0",
        "a\r\nb",
        "' OR 1=1 --",
        "%",
        "\ud7ff\U0010ffff",
        "x" * 6000,
        f"{username}\0",
        f" {username}",
    ]
    for name in names:
        async with service.connect(log_in=False) as connection:
            for pair in ((name, password), (username, name)):
                lines = b"AUTH LOGIN\r\n%b\r\n%b\r\n" % tuple(map(encoded, pair))
                replies = await connection.ask(lines, replies=3)
                assert [reply[:3] for reply in replies] == [b"334", b"334", b"535"], pair
        service.clock.pass_seconds(60)


async def test_n_commands_that_answer_a_challenge_are_no_commands(service: WholeService) -> None:
    """N of F5: in the middle of AUTH nothing else is obeyed, and whoever asks for a password learns nothing."""
    async with service.connect(log_in=False) as connection:
        replies = await connection.ask(b"AUTH PLAIN\r\nMAIL FROM:<shop@example.com>\r\nNOOP\r\n", replies=3)
        assert [reply[:3] for reply in replies] == [b"334", b"501", b"250"]


# F6 and E12: guessing.


async def guess(service: WholeService, count: int) -> list[str]:
    """The codes of so many wrong passwords in one session."""
    async with service.connect(log_in=False) as connection:
        codes = [await code(connection, plain("", service.login[0], WRONG)) for _ in range(count)]
        if codes[-1] == "421":
            assert await connection.rest() == b""
    return codes


async def by_http(service: WholeService, *, password: str) -> int:
    """The status of a request with this password, from a client without a memory."""
    auth = (service.login[0], password)
    return (await service.http.get("/v1/account", auth=auth)).status_code


async def test_f6_the_fifth_wrong_password_closes_and_counts_for_http(service: WholeService) -> None:
    """F6: 5 wrong AUTHs: 421 and the end. E12: HTTP is slowed by them, for the right password too, for a while."""
    assert await guess(service, 5) == ["535"] * 4 + ["421"]
    answer = await service.post()
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    async with service.connect(log_in=False) as connection:
        (reply,) = await connection.ask(plain("", *service.login))
        assert reply.startswith(b"451 4.7.1 rate_limited: ")
        service.clock.pass_seconds(60)
        assert (await service.post()).status_code == 202
        assert await code(connection, plain("", *service.login)) == "235"
    assert len(await service.settled()) == 1


async def test_e12_failures_over_http_count_for_smtp(service: WholeService) -> None:
    """E12, and F6 reversed: what failed over HTTP throttles AUTH, which refuses temporarily and never with 5xx."""
    for _ in range(5):
        answer = await service.http.post("/emails", json={}, auth=(service.login[0], WRONG))
        assert answer.status_code == 401
    async with service.connect(log_in=False) as connection:
        # The fifth would end the session: who is slowed down does not wait in it.
        for _ in range(4):
            (reply,) = await connection.ask(plain("", *service.login))
            assert re.match(rb"451 4\.7\.1 rate_limited: .* Retry-After: \d+ \(req_\w+\)$", reply)
        service.clock.pass_seconds(60)
        assert await code(connection, plain("", *service.login)) == "235"


async def test_e12_failures_over_http_and_smtp_add_up(service: WholeService) -> None:
    """E12: three wrong passwords here and two there are five."""
    assert await guess(service, 3) == ["535"] * 3
    for _ in range(2):
        assert (await service.http.post("/emails", json={}, auth=(service.login[0], WRONG))).status_code == 401
    async with service.connect(log_in=False) as connection:
        assert await code(connection, plain("", *service.login)) == "451"


async def test_n_reconnecting_does_not_start_the_count_anew(service: WholeService) -> None:
    """N of F6: many sessions of few guesses are as slow as one of many."""
    codes = [(await guess(service, 1))[0] for _ in range(8)]
    assert codes == ["535"] * 5 + ["451"] * 3


async def test_n_guesses_made_all_at_once_are_no_faster(service: WholeService) -> None:
    """N of F6: twenty sessions at once: five passwords are tried, whatever the order."""
    found = await asyncio.gather(*(guess(service, 1) for _ in range(20)))
    codes = sorted(codes[0] for codes in found)
    # A pair that is being checked already is waited for: the same wrong one counts once for those who wait together.
    assert set(codes) <= {"451", "535"}
    async with service.connect(log_in=False) as connection:
        for number in range(5):
            await connection.ask(plain("", service.login[0], f"{WRONG} {number}"))
    async with service.connect(log_in=False) as connection:
        assert await code(connection, plain("", *service.login)) == "451"


async def test_n_somebody_elses_failures_do_not_stop_a_session_that_is_open(service: WholeService) -> None:
    """N of F6: nobody can lock a customer out who is logged in, or whose password was right before."""
    async with service.connect() as connection:
        assert (await guess(service, 5))[-1] == "421"
        await connection.ask(BEGIN + b"DATA\r\n", replies=3)
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert (await service.hand_in(MESSAGE)).startswith("250 ")
    assert len(await service.settled()) == 2


# F12: nobody relays.


@pytest.mark.parametrize("way", WAYS)
async def test_f12_nobody_relays_without_auth(service: WholeService, way: str) -> None:
    """F12: a relay attempt without AUTH: 530, always: from inside to outside, outside to inside, null sender, BDAT."""
    senders = (b"shop@example.com", b"eve@elsewhere.example", b"", b"postmaster@mail.example.com")
    async with service.connect(way, log_in=False) as connection:
        for sender in senders:
            (reply,) = await connection.ask(b"MAIL FROM:<%b>\r\n" % sender)
            assert reply.startswith(b"530 5.7.0 unauthorized: Authentication required; use AUTH first (req_"), sender
            assert await code(connection, b"RCPT TO:<ada@example.net>\r\n") == "503"
        assert await code(connection, b"DATA\r\n") == "503"
        replies = await connection.ask(BEGIN + b"BDAT %d LAST\r\n%b" % (len(MESSAGE), MESSAGE), replies=3)
        assert [reply[:3] for reply in replies] == [b"530", b"503", b"503"]
        assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]
    assert await service.settled() == []


async def test_f12_a_login_that_failed_is_none(service: WholeService) -> None:
    """F12: 530 after a wrong password, after one that was cancelled, after EHLO and after RSET."""
    async with service.connect(log_in=False) as connection:
        for line in (plain("", service.login[0], WRONG), b"EHLO again.example\r\n", b"RSET\r\n"):
            await connection.ask(line)
            assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
        await connection.ask(b"AUTH LOGIN\r\n*\r\n", replies=2)
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
        # RFC 4954 section 6: who one is may be said in MAIL, and counts for nothing.
        assert await code(connection, b"MAIL FROM:<shop@example.com> AUTH=<>\r\n") in {"530", "555"}
    async with service.connect(log_in=False) as connection:
        assert await code(connection, b"HELO client.example.org\r\n") == "250"
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
    assert await service.settled() == []


# F13: what is no SMTP.


async def test_f13_verbs_that_ask_about_others_reveal_nothing(service: WholeService) -> None:
    """F13: VRFY, EXPN, ETRN: 502; unknown verbs: 500. The same for addresses that exist and that do not."""
    for log_in in (False, True):
        async with service.connect(log_in=log_in) as connection:
            for verb in (b"VRFY", b"EXPN", b"ETRN"):
                about = (b"shop@example.com", b"nobody@example.com", b"@example.com", b"")
                reported = [(await connection.ask(verb + b" " + name + b"\r\n"))[0] for name in about]
                assert {reply[:3] for reply in reported} == {b"502"}
                assert len({*reported}) == 1
            for line in (b"XYZZY", b"SEND FROM:<a@example.com>", b"TURN", b"mail", b"", b"\xff\xfe", b"D\0ATA"):
                assert (await connection.ask(line + b"\r\n"))[0][:1] == b"5", line
            assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]


@pytest.mark.parametrize("garbage", [b"XYZZY\r\n", b"\xde\xad\xbe\xef\r\n", b"\r\n", b"\n", b"x" * 5000 + b"\r\n"])
async def test_f13_pipelined_garbage_is_closed_after_some_errors(service: WholeService, garbage: bytes) -> None:
    """F13: garbage without end is answered with 5xx for a while, and then with 421 and the end of the connection."""
    async with service.connect(log_in=False) as connection:
        await connection.send(garbage * 21)
        replies = (await connection.rest()).split(b"\r\n")[:-1]
    *errors, last = [reply[:3] for reply in replies]
    assert {*errors} == {b"500"}
    assert len(errors) == 20
    assert last == b"421"


@pytest.mark.parametrize("way", ["clear", "tls"])
async def test_f13_an_http_request_reveals_nothing_and_sends_nothing(service: WholeService, way: str) -> None:
    """F13: a browser that is made to post a mail session to this port is let go at once; no line of it is obeyed."""
    body = b"EHLO x\r\n" + plain("", *service.login) + BEGIN + b"DATA\r\n" + MESSAGE + b".\r\n"
    request = b"POST / HTTP/1.1\r\nHost: mail.example.com\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    address = service.addresses["submission_tls" if way == "tls" else "submission"]
    async with recording_listener.connect(address, tls=service.trusting if way == "tls" else None) as connection:
        await connection.send(request)
        replies = (await connection.rest()).split(b"\r\n")[:-1]
    assert [reply[:3] for reply in replies] == [b"220", b"421"]
    assert await service.settled() == []
