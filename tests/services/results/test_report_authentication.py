"""Reports are authenticated by a DKIM signature of a listed reporter that fits the author, and by nothing else."""

import pytest

from postroad.services import context
from postroad.services.results import report_authentication
from tests import dkim_signatures, dns_server, feedback_loop

FROM = b"From: Feedback <Feedback@provider.example>\r\n"
REST = b"To: <complaints@example.com>\r\nSubject: x\r\n\r\nHello\r\n"
SIGNED = dkim_signatures.sign(FROM + REST)


async def is_authenticated(ctx: context.Context, content: bytes, *, zones: dns_server.Zones | None = None) -> bool:
    async with feedback_loop.listed(ctx, zones=zones) as listed:
        return await report_authentication.is_authenticated(listed, content)


@pytest.mark.parametrize(
    "content",
    [
        SIGNED,
        dkim_signatures.sign(FROM.replace(b"@provider", b"@fbl.provider") + REST),
        dkim_signatures.sign(FROM.replace(b"@provider", b"@PROVIDER") + REST),
        dkim_signatures.sign(FROM + REST + b"x" * 200_000),
        dkim_signatures.sign(SIGNED, tags={"d": "list.example", "s": "other"}),
    ],
    ids=["itself", "subdomain", "case", "large", "beside another"],
)
async def test_a_signed_report_of_a_listed_reporter_is_authenticated(ctx: context.Context, content: bytes) -> None:
    assert await is_authenticated(ctx, content)


@pytest.mark.parametrize(
    "content",
    [
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
        b"",
        REST,
    ],
)
async def test_no_other_report_is(ctx: context.Context, content: bytes) -> None:
    assert not await is_authenticated(ctx, content)


@pytest.mark.parametrize("answer", [dns_server.Fault.SERVFAIL, {"TXT": ['"v=DKIM1; p="']}, {"A": ["192.0.2.1"]}])
async def test_without_a_key_nothing_is_proven(
    ctx: context.Context, answer: dns_server.Fault | dns_server.Types
) -> None:
    assert not await is_authenticated(ctx, SIGNED, zones={feedback_loop.NAME: answer})


@pytest.mark.parametrize("author", [FROM, b"From: eve@example.net\r\n"])
async def test_nobody_can_have_us_ask_for_names_of_others(ctx: context.Context, author: bytes) -> None:
    content = dkim_signatures.sign(author + REST, tags={"d": "example.net"})
    async with dns_server.running(dict(feedback_loop.ZONES)) as dns:
        listed = feedback_loop.asking(ctx, dns)
        assert not await report_authentication.is_authenticated(listed, content)
        assert dns.questions == []
        assert await report_authentication.is_authenticated(listed, SIGNED)
        assert [name for name, _ in dns.questions] == [feedback_loop.NAME]


async def test_an_entry_may_be_one_address(ctx: context.Context) -> None:
    async with feedback_loop.listed(ctx) as listed:
        for reporter, is_listed in (("FEEDBACK@provider.example", True), ("other@provider.example", False)):
            only = feedback_loop.with_reporters(listed, reporter)
            assert await report_authentication.is_authenticated(only, SIGNED) is is_listed
