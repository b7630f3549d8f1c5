"""Queries for the DNS records of sender domains, and the values that this installation expects.

Each record is queried on its own: a slow or broken one does not affect the others. Time, the number of queries and the
size of answers are bounded, because the zones are untrusted. A lookup's time begins when it gets its slot: waiting for
others is not the zone's fault.
"""

import asyncio
from typing import Final

from postroad import config
from postroad.concurrency import fair_semaphore, lru
from postroad.model import domain_records
from postroad.network import hostname, resolver
from postroad.protocol.dns import dmarc_record, spf_record
from postroad.services.domains import spf

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
    """Queries records; one instance per process."""

    def __init__(self, settings: config.Settings) -> None:
        _refuse_impossible(settings.domains.spf)
        self._settings = settings
        self._dns = resolver.Resolver(
            settings.delivery.resolvers,
            try_seconds=TRY_SECONDS,
            query_seconds=QUERY_SECONDS,
            max_concurrent=MAX_CONCURRENT_QUERIES,
        )
        self._lookups = fair_semaphore.FairSemaphore(MAX_CONCURRENT_CHECKS)
        self._service: domain_records.Service | None = None
        # The last check by callers, by account and name.
        self.check_requested_at: lru.LruCache[tuple[str, str], int] = lru.LruCache(MAX_REMEMBERED_CHECKS)

    async def service(self) -> domain_records.Service:
        """This installation's expected values; determined once."""
        if self._service is None:
            delivery = self._settings.delivery
            self._service = domain_records.service(
                host=delivery.hostname or await _system_name(),
                spf=self._settings.domains.spf,
                source_addresses=[one.address for one in self._settings.sources],
                has_upstreams=bool(self._settings.upstreams),
                return_path_domain=delivery.return_path_domain,
                return_path_label=delivery.return_path_label,
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
                return finding
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
            missing = await spf.Search(self._dns).missing(record.name, parsed, wanted)
        except (spf_record.SpfError, spf.PermError) as problem:
            return _wrong(found, f"found {shown}; {problem}")
        except spf.TempError as trouble:
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
