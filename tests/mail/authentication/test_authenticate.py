"""A mail that came in has results of SPF, DKIM, DMARC and ARC, whatever is in it and whatever DNS says."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from postroad import context
from postroad.mail.authentication import authenticate, header, lookups
from postroad.protocol.dns import tag_lists
from tests import arc_seals, dkim_signatures, dns_server, feedback_loop

AUTHOR: Final = "provider.example"
CONTENT: Final = b"From: Ada <ada@provider.example>\r\nTo: b@c.example\r\nSubject: x\r\n\r\nHello\r\n"
SIGNED: Final = dkim_signatures.sign(CONTENT)
CLIENT: Final = "192.0.2.9"


def texts(*values: str) -> dns_server.Types:
    return {"TXT": [" ".join(f'"{part}"' for part in tag_lists.txt_strings(value)) for value in values]}


KEY: Final = {f"sel._domainkey.{AUTHOR}": texts(dkim_signatures.RECORD)}
ZONES: Final[dns_server.Zones] = {
    **KEY,
    AUTHOR: texts("v=spf1 ip4:192.0.2.9 -all"),
    "_dmarc.provider.example": texts("v=DMARC1; p=reject; sp=quarantine"),
}


@contextlib.asynccontextmanager
async def asking(
    ctx: context.Context, zones: Mapping[str, dns_server.Types | dns_server.Fault]
) -> AsyncIterator[tuple[context.Context, dns_server.DnsServer]]:
    async with dns_server.running(dict(zones)) as dns:
        yield feedback_loop.asking(ctx, dns), dns


async def results(
    ctx: context.Context,
    content: bytes = SIGNED,
    *,
    zones: Mapping[str, dns_server.Types | dns_server.Fault] = ZONES,
    client: str = CLIENT,
    sender: str = "ada@provider.example",
) -> authenticate.Results:
    async with asking(ctx, zones) as (asked, dns):
        found = await authenticate.authenticate(
            asked, content, client_address=client, helo="mx.provider.example", sender=sender, party="acc_1"
        )
        assert len(set(dns.questions)) <= lookups.MAX_LOOKUPS
        return found


async def test_a_mail_of_its_author_passes_everything(ctx: context.Context) -> None:
    found = await results(ctx, arc_seals.chain(SIGNED, sets=2))
    assert header.value(found, host="mx.example.com") == (
        "mx.example.com; spf=pass smtp.mailfrom=provider.example; "
        "dkim=pass header.d=provider.example header.s=sel; "
        "dmarc=pass header.from=provider.example policy.dmarc=reject; arc=pass"
    )
    assert found.dmarc.aligned_by == ("spf", "dkim")
    assert found.arc.sealers == ("provider.example", "provider.example")
    assert found.arc.results == arc_seals.RESULTS


async def test_a_large_mail_is_read_in_a_thread(ctx: context.Context) -> None:
    found = await results(ctx, dkim_signatures.sign(CONTENT + b"x" * 200_000))
    assert [each.result for each in found.dkim] == ["pass"]


async def test_a_forged_mail_fails(ctx: context.Context) -> None:
    found = await results(ctx, SIGNED.replace(b"Hello", b"Other"), client="198.51.100.1")
    assert (found.spf.result, found.dkim[0].result, found.dmarc.result) == ("fail", "fail", "fail")
    assert found.dmarc.policy == "reject"
    assert found.arc == authenticate.Arc("none")


async def test_another_domain_that_passes_proves_nothing(ctx: context.Context) -> None:
    zones = ZONES | {
        "evil.example": texts("v=spf1 +all"),
        "sel._domainkey.evil.example": texts(dkim_signatures.RECORD),
        "_dmarc.evil.example": texts("v=DMARC1; p=none"),
    }
    content = dkim_signatures.sign(CONTENT, tags={"d": "evil.example"})
    found = await results(ctx, content, zones=zones, sender="eve@evil.example")
    assert (found.spf.result, found.dkim[0].result, found.dmarc.result) == ("pass", "pass", "fail")


FROM_SUB: Final = CONTENT.replace(b"@provider", b"@mail.provider")


@pytest.mark.parametrize(
    "content, records, result, policy",
    [
        # The organization's domain and what is below it are aligned, unless the record is strict.
        (dkim_signatures.sign(FROM_SUB), {"provider.example": "v=DMARC1; p=reject"}, "pass", "reject"),
        (dkim_signatures.sign(FROM_SUB), {"provider.example": "v=DMARC1; p=reject; adkim=s"}, "fail", "reject"),
        (SIGNED, {"provider.example": "v=DMARC1; p=reject; adkim=s"}, "pass", "reject"),
        # A record below says where an organization ends.
        (
            dkim_signatures.sign(FROM_SUB),
            {"mail.provider.example": "v=DMARC1; p=none; psd=n", "provider.example": "v=DMARC1; p=reject"},
            "fail",
            "none",
        ),
        # The suffix is of no organization; each label below it is one.
        (dkim_signatures.sign(FROM_SUB), {"provider.example": "v=DMARC1; p=reject; psd=y"}, "fail", "reject"),
        (dkim_signatures.sign(FROM_SUB), {"example": "v=DMARC1; p=quarantine; psd=y"}, "pass", "quarantine"),
        # What holds for names below, and for those that do not exist.
        (FROM_SUB, {"provider.example": "v=DMARC1; p=none; sp=quarantine; np=reject"}, "fail", "reject"),
        (CONTENT, {"provider.example": "v=DMARC1; p=none; sp=quarantine; np=reject"}, "fail", "none"),
        (CONTENT, {"provider.example": "v=DMARC1; p=reject; t=y"}, "fail", "quarantine"),
        (CONTENT, {"provider.example": "v=DMARC1; rua=mailto:a@provider.example"}, "fail", "none"),
        (CONTENT, {"provider.example": "v=DMARC1; p=reject; sp=; np=x; adkim=x; t=x; psd=x"}, "fail", "reject"),
        # What is no record.
        (CONTENT, {"provider.example": "v=DMARC1"}, "none", ""),
        (CONTENT, {"provider.example": "v=DMARC1; p=reject; p=none"}, "none", ""),
        (CONTENT, {"provider.example": "V=DMARC1; p=reject"}, "none", ""),
        (CONTENT, {}, "none", ""),
    ],
)
async def test_the_owner_of_the_domain_decides(
    ctx: context.Context, content: bytes, records: Mapping[str, str], result: str, policy: str
) -> None:
    zones = KEY | {f"_dmarc.{name}": texts(text) for name, text in records.items()}
    found = await results(ctx, content, zones=zones, sender="")
    assert (found.dmarc.result, found.dmarc.policy) == (result, policy)


async def test_two_records_are_none(ctx: context.Context) -> None:
    zones = {"_dmarc.provider.example": texts("v=DMARC1; p=reject", "v=DMARC1; p=none")}
    assert (await results(ctx, zones=zones)).dmarc.result == "none"


@pytest.mark.parametrize(
    "field",
    [
        b"",
        b"From: ada@provider.example\r\nFrom: eve@evil.example\r\n",
        b"From: ada@provider.example, eve@evil.example\r\n",
        b"From: ada@provider.example <eve@evil.example>\r\n",
        b"From: ada\r\n",
        b"From: \xff@provider.example\r\n",
        b"From: " + b"(" * 3_000 + b"\r\n",
        b"X: a\nFrom: ada@provider.example\r\n",
    ],
)
async def test_without_one_author_nothing_is_proven(ctx: context.Context, field: bytes) -> None:
    found = await results(ctx, field + CONTENT.partition(b"\r\n")[2])
    assert (found.dmarc.result, found.dmarc.domain) == ("permerror", "")


async def test_a_name_in_another_script_is_looked_up_in_a_labels(ctx: context.Context) -> None:
    zones = {"_dmarc.xn--bcher-kva.example": texts("v=DMARC1; p=reject")}
    content = CONTENT.replace(b"ada@provider", "ada@bücher".encode())
    found = await results(ctx, content, zones=zones, sender="ada@bücher.example")
    assert (found.dmarc.domain, found.dmarc.policy) == ("xn--bcher-kva.example", "reject")
    assert (found.spf.domain, found.spf.result) == ("xn--bcher-kva.example", "none")


@pytest.mark.parametrize("fault", [dns_server.Fault.SERVFAIL, dns_server.Fault.REFUSED])
async def test_a_failure_of_dns_is_a_result(ctx: context.Context, fault: dns_server.Fault) -> None:
    found = await results(ctx, arc_seals.seal(SIGNED), zones={"*": fault})
    assert (found.spf.result, found.dkim[0].result, found.dmarc.result, found.arc.result) == ("temperror",) * 4
    # Another time, the key may prove what SPF does not.
    half = await results(ctx, zones=ZONES | {f"sel._domainkey.{AUTHOR}": fault}, client="198.51.100.1")
    assert (half.spf.result, half.dkim[0].result, half.dmarc.result) == ("fail", "temperror", "temperror")
    proven = await results(ctx, zones=ZONES | {f"sel._domainkey.{AUTHOR}": fault})
    assert (proven.dmarc.result, proven.dmarc.aligned_by) == ("pass", ("spf",))


async def test_no_forger_turns_a_failure_into_a_doubt(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of the forger that cost time or lookups, or fail, change nothing about the author's domain."""
    monkeypatch.setattr(lookups, "LOOKUP_SECONDS", 2.0)
    zones: dns_server.Zones = {
        "_dmarc.provider.example": texts("v=DMARC1; p=reject"),
        "evil.example": texts("v=spf1 " + " ".join(f"mx:m{number}.example" for number in range(10))),
        **{
            f"m{number}.example": {"MX": [f"1 h{host}.m{number}.example." for host in range(10)]}
            for number in range(10)
        },
        "sel._domainkey.evil.example": dns_server.Fault.SERVFAIL,
        "sel._domainkey.slow.example": dns_server.Fault.SILENCE,
        "*": {"A": ["198.51.100.1"]},
    }
    content = dkim_signatures.sign(CONTENT, tags={"d": "evil.example"})
    found = await results(ctx, content, zones=zones, sender="eve@evil.example")
    assert (found.spf.result, found.dkim[0].result) == ("temperror", "temperror")
    assert (found.dmarc.result, found.dmarc.policy) == ("fail", "reject")
    content = dkim_signatures.sign(CONTENT, tags={"d": "slow.example"})
    found = await results(ctx, content, zones=zones, sender="eve@evil.example")
    assert (found.dmarc.result, found.dmarc.policy) == ("fail", "reject")


async def test_silent_name_servers_hold_no_mail_up(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "LOOKUP_SECONDS", 0.05)
    found = await results(ctx, arc_seals.chain(SIGNED, sets=3), zones={"*": dns_server.Fault.SILENCE})
    assert (found.spf.result, found.dkim[0].result, found.dmarc.result, found.arc.result) == ("temperror",) * 4


def public_key(bits: int) -> tuple[rsa.RSAPrivateKey, str]:
    key = rsa.generate_private_key(65_537, bits)
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return key, tag_lists.dkim_value(der)


@pytest.mark.parametrize(
    "content, result",
    [
        (dkim_signatures.sign(CONTENT, tags={"l": "5"}), "policy"),
        (dkim_signatures.sign(CONTENT, tags={"h": "from:" * 300 + "to"}), "policy"),
        (dkim_signatures.sign(CONTENT, tags={"x": "1"}), "permerror"),
        (dkim_signatures.sign(CONTENT, tags={"a": "rsa-sha1"}), "permerror"),
        (dkim_signatures.sign(CONTENT, tags={"d": "x" * 5_000}), "permerror"),
        (dkim_signatures.sign(CONTENT, tags={"s": "none"}), "permerror"),
        (b"DKIM-Signature: \xff\r\n" + CONTENT, "permerror"),
        (dkim_signatures.sign(CONTENT).replace(b"Subject: x", b"Subject: y"), "fail"),
    ],
)
async def test_a_signature_that_counts_for_nothing_says_so(ctx: context.Context, content: bytes, result: str) -> None:
    (found,) = (await results(ctx, content, client="198.51.100.1")).dkim
    assert found.result == result
    assert len(found.domain) <= 253


async def test_a_huge_key_proves_nothing(ctx: context.Context) -> None:
    key, record = public_key(4_104)
    zones = ZONES | {f"sel._domainkey.{AUTHOR}": texts(record)}
    assert [each.result for each in (await results(ctx, dkim_signatures.sign(CONTENT, key=key), zones=zones)).dkim] == [
        "fail"
    ]


def deep(number: int, domain: str) -> str:
    """A name below a domain that costs as many lookups of policies as there are."""
    return ".".join([*[f"x{number}"] * 20, domain])


def sealed_by_many(content: bytes, *, sets: int) -> bytes:
    """Each seal names another key."""
    for number in range(1, sets + 1):
        content = arc_seals.seal(content, number=number, tags={"d": f"s{number}.example"})
    return content


def signed_by_many(domain: str, *, signatures: int) -> bytes:
    content = CONTENT
    for number in range(signatures):
        content = dkim_signatures.sign(content, tags={"d": deep(number, domain)})
    return content


async def test_of_many_signatures_a_few_are_read(ctx: context.Context) -> None:
    zones: dns_server.Zones = {"*": texts(dkim_signatures.RECORD)}
    content = sealed_by_many(signed_by_many(AUTHOR, signatures=8), sets=30)
    found = await results(ctx, content, zones=zones)
    assert [each.result for each in found.dkim] == ["pass"] * 5
    assert found.arc.result == "pass"


async def test_a_mail_has_no_more_lookups_than_one_may_need(ctx: context.Context) -> None:
    """Signatures of names below the author's, which only the last label tells apart, and seals of others."""
    zones: dns_server.Zones = {
        "_dmarc.provider.example": texts("v=DMARC1; p=reject; adkim=r"),
        "_dmarc.mail.provider.example": texts("v=DMARC1; p=reject; psd=n"),
        "*": texts(dkim_signatures.RECORD),
    }
    content = sealed_by_many(signed_by_many("mail.provider.example", signatures=5), sets=50)
    found = await results(ctx, content, zones=zones, sender="")
    assert [each.result for each in found.dkim] == ["pass"] * 5
    assert (found.dmarc.result, found.arc.result) == ("fail", "temperror")
    assert found.arc.reason == "the mail needs more than 80 DNS lookups"


async def test_beyond_the_largest_header_nothing_is_read(ctx: context.Context) -> None:
    content = sealed_by_many(signed_by_many(AUTHOR, signatures=100), sets=50)
    found = await results(ctx, content)
    assert (found.dkim, found.arc.result, found.dmarc.result) == ((), "none", "permerror")


async def test_words_of_strangers_are_not_in_the_header(ctx: context.Context) -> None:
    content = dkim_signatures.sign(CONTENT, tags={"d": "a (b)\r\n ; dmarc=pass", "s": '"'})
    found = await results(ctx, content, sender='"; dmarc=pass x="@evil example')
    assert header.value(found, host="mx.example.com") == (
        "mx.example.com; spf=none; dkim=permerror; "
        "dmarc=fail header.from=provider.example policy.dmarc=reject; arc=none"
    )
