"""Reports are authenticated by a DKIM signature of a listed reporter that fits the author, and by nothing else."""

import email.utils

import pytest

from postroad import context, errors
from postroad.mail.results import report_authentication
from postroad.model.units import times
from tests import dkim_signatures, dns_server, feedback_loop
from tests.contexts import Clock

FROM = b"From: Feedback <Feedback@provider.example>\r\n"
DATE = b"Date: Fri, 15 Jan 2027 08:00:00 +0000\r\n"
TYPE = b"Content-Type: multipart/report; boundary=b\r\n"
REST = b"To: <Complaints@example.com>\r\nSubject: x\r\n" + DATE + TYPE + b"\r\nHello\r\n"
SIGNED = dkim_signatures.sign(FROM + REST)
NOW = Clock().now // times.SECOND
DAY = times.DAY // times.SECOND


def dated(seconds: int, **tags: str) -> bytes:
    """A report whose Date is so much later than now."""
    date = f"Date: {email.utils.formatdate(NOW + seconds)}\r\n".encode()
    return dkim_signatures.sign(FROM + REST.replace(DATE, date), tags=tags)


async def is_authenticated(ctx: context.Context, content: bytes, *, zones: dns_server.Zones | None = None) -> bool:
    return await authenticated(ctx, [content], zones=zones) == [content]


async def authenticated(
    ctx: context.Context, contents: list[bytes], *, zones: dns_server.Zones | None = None
) -> list[bytes]:
    """Those of the reports that are."""
    async with feedback_loop.listed(ctx, zones=zones) as listed:
        return [one for one in contents if await report_authentication.authenticate(listed, one) is not None]


AUTHENTIC = [
    SIGNED,
    dkim_signatures.sign(FROM.replace(b"@provider", b"@fbl.provider") + REST),
    dkim_signatures.sign(FROM.replace(b"@provider", b"@PROVIDER") + REST),
    dkim_signatures.sign(FROM + REST + b"x" * 200_000),
    dkim_signatures.sign(SIGNED, tags={"d": "list.example", "s": "other"}),
    dated(-5 * DAY),
    dated(DAY),
    dated(-9 * DAY, t=str(NOW - 5 * DAY)),
    dkim_signatures.sign(FROM + REST, tags={"h": "from:content-type", "t": str(NOW)}),
    dkim_signatures.sign(FROM + REST.replace(b"+0000", b"-0000")),
]


async def test_a_signed_report_of_a_listed_reporter_is_authenticated(ctx: context.Context) -> None:
    assert await authenticated(ctx, AUTHENTIC) == AUTHENTIC


OTHERS = [
    FROM + REST,
    SIGNED.replace(b"Hello", b"Other"),
    SIGNED.replace(b"Feedback@", b"eve@"),
    b"From: eve@example.net\r\n" + SIGNED,
    SIGNED.replace(FROM, FROM + FROM),
    dkim_signatures.sign(FROM.replace(b"@provider.example>", b"@provider.example>, eve@provider.example") + REST),
    dkim_signatures.sign(b"From: eve@example.net\r\n" + REST),
    dkim_signatures.sign(b"From: feedback@evilprovider.example\r\n" + REST),
    dkim_signatures.sign(b"From: feedback@provider.example.net\r\n" + REST),
    dkim_signatures.sign(b'From: "feedback@provider.example" <eve@example.net>\r\n' + REST),
    dkim_signatures.sign(b"From: \xff\r\n" + REST),
    dkim_signatures.sign(FROM + REST, tags={"d": "example.net"}),
    dkim_signatures.sign(FROM + REST, tags={"d": "fbl.provider.example"}),
    dkim_signatures.sign(FROM + REST, tags={"s": "absent"}),
    dkim_signatures.sign(FROM + REST, tags={"x": "1"}),
    dkim_signatures.sign(FROM + REST, tags={"h": "from:to:subject:date"}),
    dkim_signatures.sign(FROM + REST, tags={"h": "from:content-type"}),
    dkim_signatures.sign(FROM + REST, tags={"t": "now"}),
    dkim_signatures.sign(FROM + REST.replace(TYPE, b"")),
    dkim_signatures.sign(FROM + REST.replace(b"multipart/report", b"text/plain")),
    dkim_signatures.sign(FROM + REST.replace(DATE, b"")),
    dkim_signatures.sign(FROM + REST.replace(DATE, b"Date: soon\r\n")),
    dkim_signatures.sign(FROM + REST.replace(DATE, b"Date: Fri, 15 Jan 99999999999 08:00:00 +0000\r\n")),
    SIGNED.replace(TYPE, TYPE + TYPE),
    TYPE + SIGNED,
    DATE + SIGNED,
    dated(-5 * DAY - 1),
    dated(DAY + 1),
    dated(0, t=str(NOW - 5 * DAY - 1)),
    dkim_signatures.sign(b"From: " + b"(" * 1_000 + b")" * 1_000 + b"<feedback@provider.example>\r\n" + REST),
    b"",
    REST,
]


async def test_no_other_report_is(ctx: context.Context) -> None:
    assert await authenticated(ctx, OTHERS) == []


@pytest.mark.parametrize("answer", [None, {"TXT": ['"v=DKIM1; p="']}, {"A": ["192.0.2.1"]}])
async def test_without_a_key_nothing_is_proven(ctx: context.Context, answer: dns_server.Types | None) -> None:
    zones: dns_server.Zones = {} if answer is None else {feedback_loop.NAME: answer}
    assert not await is_authenticated(ctx, SIGNED, zones=zones)


async def test_a_reporter_comes_again_when_dns_fails(ctx: context.Context) -> None:
    zones: dns_server.Zones = {feedback_loop.NAME: dns_server.Fault.SERVFAIL}
    with pytest.raises(errors.TemporaryFailure, match="DNS returned no answer"):
        await is_authenticated(ctx, SIGNED, zones=zones)
    assert not await is_authenticated(ctx, SIGNED.replace(b"@provider", b"@other"), zones=zones)
    assert not await is_authenticated(ctx, SIGNED.replace(b"Hello", b"Other"), zones=zones)
    other = dkim_signatures.sign(SIGNED, tags={"s": "broken"})
    both: dns_server.Zones = {
        **feedback_loop.ZONES,
        f"broken._domainkey.{dkim_signatures.DOMAIN}": dns_server.Fault.SERVFAIL,
    }
    assert await is_authenticated(ctx, other, zones=both)


async def test_silent_name_servers_hold_no_session(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_authentication, "LOOKUP_SECONDS", 0.05)
    with pytest.raises(errors.TemporaryFailure):
        await is_authenticated(ctx, SIGNED, zones={feedback_loop.NAME: dns_server.Fault.SILENCE})


@pytest.mark.parametrize("author", [FROM, b"From: eve@example.net\r\n"])
async def test_nobody_can_have_us_ask_for_names_of_others(ctx: context.Context, author: bytes) -> None:
    content = dkim_signatures.sign(author + REST, tags={"d": "example.net"})
    async with dns_server.running(dict(feedback_loop.ZONES)) as dns:
        listed = feedback_loop.asking(ctx, dns)
        assert await report_authentication.authenticate(listed, content) is None
        assert dns.questions == []
        assert await report_authentication.authenticate(listed, SIGNED) is not None
        assert [name for name, _ in dns.questions] == [feedback_loop.NAME]


async def test_an_entry_may_be_one_address(ctx: context.Context) -> None:
    async with feedback_loop.listed(ctx) as listed:
        for reporter, is_listed in (("FEEDBACK@provider.example", True), ("other@provider.example", False)):
            only = feedback_loop.with_reporters(listed, reporter)
            assert (await report_authentication.authenticate(only, SIGNED) is not None) is is_listed


async def test_a_proof_tells_signatures_apart_and_has_only_a_signed_recipient(ctx: context.Context) -> None:
    async with feedback_loop.listed(ctx) as listed:
        first = await report_authentication.authenticate(listed, SIGNED)
        again = await report_authentication.authenticate(listed, b"X: y\r\n" + SIGNED)
        unsigned = dkim_signatures.sign(FROM + REST, tags={"h": "from:date:content-type"})
        other = await report_authentication.authenticate(listed, unsigned)
    assert first is not None
    assert other is not None
    assert first == again
    assert (first.sent_to, other.sent_to) == ("complaints@example.com", "")
    assert first.signature != other.signature
