"""SPF: whether the domain of the envelope sender lets this client send for it (RFC 7208).

Checked is the domain of MAIL FROM, or that of EHLO for the null sender (section 2.4). Limits of section 4.6.4: ten
terms that ask DNS, two lookups without an answer, ten hosts of an `mx` or names of a `ptr`. Explanations (`exp=`) are
not looked up: they are text from strangers.
"""

import contextlib
import ipaddress
import re
from typing import Final, Literal, TypeVar

import msgspec

from postroad.mail.authentication import lookups
from postroad.network.dns import resolver
from postroad.protocol.dns import messages, spf_macros, spf_record
from postroad.protocol.mime import address

Result = Literal["pass", "fail", "softfail", "neutral", "none", "temperror", "permerror"]

MAX_VOID_LOOKUPS: Final = 2
MAX_HOSTS: Final = 10
_BY_QUALIFIER: Final[dict[str, Result]] = {"+": "pass", "-": "fail", "~": "softfail", "?": "neutral"}
# What a name is that the client cannot prove (section 7.3).
UNKNOWN: Final = "unknown"
# A name of several labels (section 4.3).
_NAME: Final = re.compile(r"[^.\s]+(?:\.[^.\s]+)+")

Record = TypeVar("Record")


class Spf(msgspec.Struct, frozen=True):
    """The result for a domain; `identity` is where it was found."""

    result: Result
    domain: str
    identity: Literal["mailfrom", "helo"]
    reason: str = ""


class _PermError(Exception):
    """The record cannot be evaluated; the message says why."""


async def check(dns: lookups.Lookups, *, client_address: str, helo: str, sender: str) -> Spf:
    """The result for a client, what it said in EHLO, and its envelope sender, which is empty for the null sender."""
    client = ipaddress.ip_address(client_address)
    if isinstance(client, ipaddress.IPv6Address) and client.ipv4_mapped:
        client = client.ipv4_mapped
    local, at, domain = sender.rpartition("@")
    domain = _in_a_labels((domain if at else helo).lower().removesuffix("."))
    identity: Literal["mailfrom", "helo"] = "mailfrom" if at else "helo"
    mail = spf_macros.Mail(client, helo, local or "postmaster", domain)
    try:
        return Spf(await _Evaluation(dns, mail).result(domain), domain, identity)
    except (_PermError, spf_record.SpfError) as problem:
        return Spf("permerror", domain, identity, str(problem))
    except lookups.LookupFailed as problem:
        return Spf("temperror", domain, identity, str(problem))


def _in_a_labels(domain: str) -> str:
    """What is no domain name stays, and has no record."""
    if domain.isascii():
        return domain
    try:
        return address.parse_domain(domain)
    except address.AddressError:
        return domain


class _Evaluation:
    """One check with what it has used up of its limits. An inner record is followed at most as often as one counts."""

    def __init__(self, dns: lookups.Lookups, mail: spf_macros.Mail) -> None:
        self._dns = dns
        self._mail = mail
        self._terms = 0
        self._void_lookups = 0

    async def result(self, domain: str, *, is_first: bool = True) -> Result:
        """The function check_host() of section 4."""
        record = await self._record(domain, is_first=is_first)
        if record is None:
            return "none"
        for term in record.mechanisms:
            if await self._matches(term, domain):
                return _BY_QUALIFIER[term.qualifier]
        if record.redirect is None:
            return "neutral"
        self._count_term()
        target = await self._expand(record.redirect, domain)
        result = await self.result(target, is_first=False)
        if result == "none":
            raise _PermError(f"redirect={target} has no SPF record")
        return result

    async def _record(self, domain: str, *, is_first: bool) -> spf_record.Record | None:
        labels = domain.split(".")
        if not _NAME.fullmatch(domain) or not all(len(label) <= messages.MAX_LABEL_OCTETS for label in labels):
            return None
        answer = await self._dns.txt(domain)
        if not answer.records and not is_first:
            self._count_void()
        found = [text for text in answer.records if spf_record.is_spf(text)]
        if len(found) > 1:
            raise _PermError(f"{domain} has {len(found)} SPF records")
        return spf_record.parse(found[0]) if found else None

    async def _matches(self, term: spf_record.Term, domain: str) -> bool:
        if term.name == "all":
            return True
        if term.network is not None:
            return self._mail.address in term.network
        self._count_term()
        target = await self._expand(term.value, domain) if term.value else domain
        match term.name:
            case "include":
                return await self._includes(target)
            case "exists":
                # Whatever the client's family is (section 5.7).
                return bool(self._records(await self._dns.ipv4(target)))
            case "ptr":
                return any(f".{name}".endswith(f".{target}") for name in await self._validated_names())
            case "mx":
                return await self._has_mail_host(term, target)
        return await self._has_address(term, target)

    async def _includes(self, target: str) -> bool:
        result = await self.result(target, is_first=False)
        if result == "none":
            raise _PermError(f"include:{target} has no SPF record")
        return result == "pass"

    async def _has_mail_host(self, term: spf_record.Term, target: str) -> bool:
        hosts = self._records(await self._dns.mx(target))
        if len(hosts) > MAX_HOSTS:
            raise _PermError(f"{target} has more than {MAX_HOSTS} mail hosts")
        for mx in hosts:
            if mx.host and await self._has_address(term, mx.host):
                return True
        return False

    async def _has_address(self, term: spf_record.Term, host: str) -> bool:
        length = term.lengths[self._mail.address.version == 6]  # noqa: PLR2004 - IPv6
        found = self._records(await self._addresses(host))
        return any(self._mail.address in ipaddress.ip_network(f"{each}/{length}", strict=False) for each in found)

    async def _validated_names(self) -> list[str]:
        """The names of the client that have its address (section 5.5). A failure of DNS is as good as no name."""
        valid = []
        try:
            names = (await self._dns.names(str(self._mail.address))).records[:MAX_HOSTS]
        except lookups.LookupFailed:
            return []
        for name in names:
            with contextlib.suppress(lookups.LookupFailed):
                if str(self._mail.address) in (await self._addresses(name)).records:
                    valid.append(name)
        return valid

    async def _addresses(self, host: str) -> resolver.Answer[str]:
        return await (self._dns.ipv4 if self._mail.address.version == 4 else self._dns.ipv6)(host)  # noqa: PLR2004

    async def _expand(self, text: str, domain: str) -> str:
        """The domain that a term names."""
        name = UNKNOWN
        if spf_macros.NAME.search(text):
            names = await self._validated_names()
            # Section 7.3: the domain itself, else a name below it, else any.
            near = [each for each in names if f".{each}".endswith(f".{domain}")]
            name = min([*near, *names[:1]], key=lambda each: (each not in near, len(each)), default=UNKNOWN)
        return spf_macros.expand(text, self._mail, domain=domain, name=name)

    def _records(self, answer: resolver.Answer[Record]) -> tuple[Record, ...]:
        if not answer.records:
            self._count_void()
        return answer.records

    def _count_void(self) -> None:
        self._void_lookups += 1
        if self._void_lookups > MAX_VOID_LOOKUPS:
            raise _PermError(f"more than {MAX_VOID_LOOKUPS} lookups found nothing")

    def _count_term(self) -> None:
        self._terms += 1
        if self._terms > spf_record.MAX_LOOKUPS:
            raise _PermError(f"more than {spf_record.MAX_LOOKUPS} terms need DNS lookups")
