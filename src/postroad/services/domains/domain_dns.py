"""DNS queries about sender domains: their records, the values expected of them, and SPF evaluated as receivers do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from postroad import config
from postroad.concurrency import caches, fairness
from postroad.model.domains import domain_records
from postroad.network import hostname
from postroad.network.dns import resolver
from postroad.protocol.dns import dmarc_record, spf_record

# Evaluates whether an SPF record permits the expected senders, as receivers do: term by term, with includes.
#
# A host that the record names is permitted by its addresses, whatever its name. Receivers make at most ten DNS lookups
# per message and then reject the whole record (RFC 7208 section 4.6.4). The same bound ends loops here. A record that
# includes an invalid one is invalid itself (section 5.2).

# A domain with macros depends on the message; it is counted, and treated as not ours.
_MACRO: Final = "%"
# A sending host has a few.
MAX_ADDRESSES: Final = 10
# Receivers look up no more mail hosts of one `mx` (section 4.6.4).
MAX_MAIL_HOSTS: Final = 10
# For a whole evaluation: records name a few. Those beyond are treated as not ours.
MAX_HOSTS: Final = 20


class PermError(Exception):
    """Receivers reject the record; the message says why."""


class TempError(Exception):
    """DNS did not answer a necessary query; the message has the name and the error."""


class Search:
    """Looks for expected terms in one domain's record; DNS answers are kept for the next term."""

    def __init__(self, dns: resolver.Resolver) -> None:
        self._dns = dns
        self._records: dict[str, spf_record.Record] = {}
        self._mail_hosts: dict[str, tuple[str, ...]] = {}
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._lookups = 0

    async def missing(
        self, domain: str, record: spf_record.Record, wanted: Sequence[spf_record.Term]
    ) -> list[spf_record.Term]:
        """The expected terms that the domain's record does not permit. Raises PermError and TempError."""
        return [
            term
            for term in wanted
            if not await self._allows_from_top(domain, record, term)
            and not await self._by_addresses(domain, record, term)
        ]

    async def _by_addresses(self, domain: str, record: spf_record.Record, wanted: spf_record.Term) -> bool:
        """A record that permits every address of a host permits the host."""
        if wanted.name != "a":
            return False
        answer = await self._dns.addresses(wanted.value or domain)
        if isinstance(answer, resolver.Failure) or not 0 < len(answer.records) <= MAX_ADDRESSES:
            return False
        ip4, ip6 = wanted.lengths
        words = [f"ip6:{address}/{ip6}" if ":" in address else f"ip4:{address}/{ip4}" for address in answer.records]
        for word in words:
            if not await self._allows_from_top(domain, record, spf_record.parse_term(word)):
                return False
        return True

    async def _allows_from_top(self, domain: str, record: spf_record.Record, wanted: spf_record.Term) -> bool:
        self._lookups = 0
        return await self._allows(domain, record, wanted, at_top=True)

    async def _allows(self, domain: str, record: spf_record.Record, wanted: spf_record.Term, *, at_top: bool) -> bool:
        for term in record.mechanisms:
            if term.name in spf_record.LOOKUP_MECHANISMS:
                self._count()
            if not await self._matches(domain, term, wanted):
                continue
            if term.qualifier == spf_record.PASS:
                return True
            if at_top and term.name != "all":
                raise PermError(f"{term.written} excludes this service; write it without the qualifier in front")
            return False
        if record.redirect is None or _MACRO in record.redirect:
            return False
        self._count()
        if wanted.name == "include" and wanted.value == record.redirect:
            return True
        following = await self._record(record.redirect, f"redirect={record.redirect}")
        return await self._allows(record.redirect, following, wanted, at_top=at_top)

    async def _matches(self, domain: str, term: spf_record.Term, wanted: spf_record.Term) -> bool:
        if term.name == "all" or spf_record.covers(term, wanted):
            return True
        if _MACRO in term.value:
            return False
        if term.name == "include":
            included = await self._record(term.value, term.written)
            return await self._allows(term.value, included, wanted, at_top=False)
        if term.name not in {"a", "mx"} or (wanted.name != "a" and wanted.network is None):
            return False
        named = term.value or domain
        hosts = await self._hosts(named) if term.name == "mx" else (named,)
        if wanted.name == "a":
            return wanted.value in hosts and spf_record.is_as_broad(term, wanted)
        addresses = [address for host in hosts for address in await self._addresses_of(host)]
        return spf_record.allows_network(term, addresses, wanted)

    async def _hosts(self, domain: str) -> tuple[str, ...]:
        if domain not in self._mail_hosts:
            answer = await self._dns.mx(domain)
            if isinstance(answer, resolver.Failure):
                raise TempError(f"{domain}: {answer.detail}")
            if len(answer.records) > MAX_MAIL_HOSTS:
                raise PermError(
                    f"{domain} has more than {MAX_MAIL_HOSTS} mail hosts, the limit of receivers (RFC 7208)"
                )
            self._mail_hosts[domain] = tuple(mx.host for mx in answer.records if mx.host)
        return self._mail_hosts[domain]

    async def _addresses_of(self, host: str) -> tuple[str, ...]:
        if host not in self._addresses:
            if len(self._addresses) >= MAX_HOSTS:
                return ()
            answer = await self._dns.addresses(host)
            if isinstance(answer, resolver.Failure):
                raise TempError(f"{host}: {answer.detail}")
            self._addresses[host] = answer.records
        return self._addresses[host]

    def _count(self) -> None:
        self._lookups += 1
        if self._lookups > spf_record.MAX_LOOKUPS:
            raise PermError(
                f"the record needs more than {spf_record.MAX_LOOKUPS} DNS lookups (RFC 7208) before it reaches "
                "this service; remove some include:, a or mx terms"
            )

    async def _record(self, domain: str, written: str) -> spf_record.Record:
        if domain in self._records:
            return self._records[domain]
        answer = await self._dns.txt(domain)
        if isinstance(answer, resolver.Failure):
            raise TempError(f"{domain}: {answer.detail}")
        found = [text for text in answer.records if spf_record.is_spf(text)]
        if len(found) != 1:
            count = "no SPF record" if not found else f"{len(found)} SPF records"
            raise PermError(f"{written} is invalid, which makes this whole record invalid: {domain} has {count}")
        try:
            record = spf_record.parse(found[0])
        except spf_record.SpfError as problem:
            raise PermError(f"{written} is invalid, which makes this whole record invalid: {problem}") from None
        self._records[domain] = record
        return record


# For one record with all its includes, from its first query on; callers wait for it.
CHECK_SECONDS: Final = 7.0
QUERY_SECONDS: Final = 4.0
TRY_SECONDS: Final = 1.5
# Over all checks of a process: name servers rate-limit clients. A domain has five records, and up to nine while its
# keys are rotated: the monitor has some 50 lookups in progress, and callers 100. A lookup waits for at most one other,
# and those of an account that has the most come last.
MAX_CONCURRENT_CHECKS: Final = 75
# A host has addresses of two kinds; everything else is queried one by one.
MAX_CONCURRENT_QUERIES: Final = 2 * MAX_CONCURRENT_CHECKS
# Far more than callers can check within the interval that matters.
MAX_REMEMBERED_CHECKS: Final = 10_000
# The system may query DNS for its own name; without an answer by then it has none.
NAME_SECONDS: Final = 1.0
# Host names of systems without a public name: RFC 6762, RFC 6761, and conventions of home networks and clouds.
NOT_PUBLIC: Final = (".arpa", ".local", ".localdomain", ".localhost", ".internal", ".lan", ".home")
# A domain has one SPF record; of a hundred, these show what is wrong.
MAX_FOUND: Final = 5


class DomainDns:
    def __init__(self, settings: config.Settings) -> None:
        _refuse_impossible(settings.domains.spf)
        self._settings = settings
        self._dns = resolver.Resolver(
            settings.delivery.resolvers,
            try_seconds=TRY_SECONDS,
            query_seconds=QUERY_SECONDS,
            max_concurrent=MAX_CONCURRENT_QUERIES,
        )
        self._lookups = fairness.FairSemaphore(MAX_CONCURRENT_CHECKS)
        self._service: domain_records.Service | None = None
        # The last check by callers, by account and name.
        self.check_requested_at: caches.LruCache[tuple[str, str], int] = caches.LruCache(MAX_REMEMBERED_CHECKS)

    async def service(self) -> domain_records.Service:
        """This installation's expected values; determined once."""
        if self._service is None:
            delivery = self._settings.delivery
            self._service = domain_records.service(
                host=delivery.hostname or await _system_name(),
                spf=self._settings.domains.spf,
                source_addresses=[source.address for source in self._settings.sources],
                has_upstreams=bool(self._settings.upstreams),
                return_path_domain=delivery.return_path_domain,
            )
        return self._service

    async def check(
        self, record: domain_records.Record, *, domain: str, account_id: str = ""
    ) -> domain_records.Finding:
        """Query one record of a domain and evaluate it, when it is its account's turn; every result is a finding."""
        if record.value is None:
            return domain_records.not_configured(record)
        async with self._lookups.hold(account_id):
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    return await self._check(record, domain)
            except TimeoutError:
                return domain_records.no_answer(record, "no answer in time")

    async def txt(self, name: str, *, party: str) -> tuple[str, ...] | None:
        """The texts of any name, when it is the party's turn; None if DNS fails."""
        async with self._lookups.hold(party):
            answer = await self._dns.txt(name)
        return None if isinstance(answer, resolver.Failure) else tuple(answer.records)

    @contextlib.asynccontextmanager
    async def turn(self, *, party: str) -> AsyncIterator[resolver.Resolver]:
        """For a lookup, when it is the party's turn."""
        async with self._lookups.hold(party):
            yield self._dns

    async def _check(self, record: domain_records.Record, domain: str) -> domain_records.Finding:
        match record.purpose:
            case domain_records.RecordPurpose.SPF:
                return await self._spf(record, await self.service())
            case domain_records.RecordPurpose.RETURN_PATH:
                return await self._return_path(record, await self.service())
            case domain_records.RecordPurpose.DMARC:
                return await self._dmarc(record, domain)
            case _:
                return await self._dkim(record, domain)

    async def _dkim(self, record: domain_records.Record, domain: str) -> domain_records.Finding:
        if record.type == "CNAME" and not record.text:
            return await self._alias(record)
        answer = await self._dns.txt(record.name)
        if isinstance(answer, resolver.Failure):
            return domain_records.no_answer(record, answer.detail)
        if not answer.records and record.type == "CNAME":
            finding = await self._alias(record)
            return domain_records.alias_without_key() if finding.state is domain_records.RecordState.OK else finding
        if not answer.records:
            twice = await self._dns.txt(f"{record.name}.{domain}")
            if isinstance(twice, resolver.Answer) and twice.records:
                return domain_records.domain_appended_twice(record, domain)
        return domain_records.check_dkim(record, answer.records)

    async def _alias(self, record: domain_records.Record) -> domain_records.Finding:
        answer = await self._dns.cname(record.name)
        if isinstance(answer, resolver.Failure):
            return domain_records.no_answer(record, answer.detail)
        return domain_records.check_alias(record, answer.records)

    async def _return_path(
        self, record: domain_records.Record, service: domain_records.Service
    ) -> domain_records.Finding:
        answer = await self._dns.mx(record.name)
        if isinstance(answer, resolver.Failure):
            return domain_records.no_answer(record, answer.detail)
        hosts = [(mx.preference, mx.host) for mx in answer.records]
        finding = domain_records.check_return_path(record, hosts, service=service)
        if finding.state is not domain_records.RecordState.OK:
            return finding
        addresses = await self._dns.addresses(service.host)
        if isinstance(addresses, resolver.Failure):
            return domain_records.no_answer_for(service.host, addresses.detail)
        return finding if addresses.records else domain_records.no_address(service.host)

    async def _dmarc(self, record: domain_records.Record, domain: str) -> domain_records.Finding:
        for place in dmarc_record.names(domain):
            answer = await self._dns.txt(place)
            if isinstance(answer, resolver.Failure):
                return domain_records.no_answer(record, answer.detail)
            finding = domain_records.check_dmarc(place, answer.records)
            if finding is not None:
                # The record of a parent domain stays as it is.
                return finding if place == record.name else msgspec.structs.replace(finding, found=())
        return domain_records.no_dmarc()

    async def _spf(self, record: domain_records.Record, service: domain_records.Service) -> domain_records.Finding:
        answer = await self._dns.txt(record.name)
        if isinstance(answer, resolver.Failure):
            return domain_records.no_answer(record, answer.detail)
        found = tuple(text for text in answer.records if spf_record.is_spf(text))
        if not found:
            return domain_records.Finding(domain_records.RecordState.MISSING, "no SPF record found; add it")
        if len(found) > 1:
            return _wrong(found, "more than one SPF record found, which receivers treat as invalid; merge them")
        shown = domain_records.quoted(found[0])
        try:
            parsed = spf_record.parse(found[0])
            wanted = [spf_record.parse_term(word) for word in service.spf]
            missing = await Search(self._dns).missing(record.name, parsed, wanted)
        except (spf_record.SpfError, PermError) as problem:
            return _wrong(found, f"found {shown}; {problem}")
        except TempError as trouble:
            return domain_records.no_answer(record, str(trouble))
        if missing:
            words = " ".join(term.written for term in missing)
            return _wrong(found, f"found {shown}; add {words}{_place(found[0])}")
        return domain_records.Finding(domain_records.RecordState.OK, f"found {shown}", found)


def _wrong(found: tuple[str, ...], sentence: str) -> domain_records.Finding:
    """The expected value of a wrong record; one that cannot be written into a zone file is not merged."""
    kept = [text for text in found if text.isprintable() and len(text) <= spf_record.MAX_CHARACTERS]
    return domain_records.Finding(domain_records.RecordState.WRONG, sentence, tuple(kept[:MAX_FOUND]))


def _place(text: str) -> str:
    """The position before the terms that end a record: nothing after them is evaluated."""
    for word in text.split():
        if word.lower().lstrip("+-~?") == "all" or word.lower().startswith("redirect="):
            return f" before {domain_records.quoted(word)}"
    return ""


def _refuse_impossible(terms: str) -> None:
    """Check at start-up that the record customers are told to publish is valid."""
    for word in terms.split():
        try:
            term = spf_record.parse_term(word)
        except spf_record.SpfError as problem:
            raise config.ConfigError(f"domains.spf: {problem}; write for example include:spf.example.net") from None
        if term.qualifier != spf_record.PASS or term.name == "all":
            raise config.ConfigError(
                f"domains.spf: {word!r} does not permit this service to send; write what customers add"
            )


async def _system_name() -> str:
    """The system's name if it can be one in public DNS; the settings may override it."""
    try:
        async with asyncio.timeout(NAME_SECONDS):
            name = await hostname.name()
    except TimeoutError:
        return ""
    return "" if name.lower().endswith(NOT_PUBLIC) else name
