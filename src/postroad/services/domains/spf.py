"""Evaluates whether an SPF record permits the expected senders, as receivers do: term by term, with includes.

A host that the record names is permitted by its addresses, whatever its name. Receivers make at most ten DNS lookups
per message and then reject the whole record (RFC 7208 section 4.6.4). The same bound ends loops here. A record that
includes an invalid one is invalid itself (section 5.2).
"""

from collections.abc import Sequence
from typing import Final

from postroad.network import resolver
from postroad.protocol.dns import spf_record

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
        return [term for term in wanted if not await self._allows_it(domain, record, term)]

    async def _allows_it(self, domain: str, record: spf_record.Record, wanted: spf_record.Term) -> bool:
        if await self._allows_from_top(domain, record, wanted):
            return True
        return await self._by_addresses(domain, record, wanted)

    async def _by_addresses(self, domain: str, record: spf_record.Record, wanted: spf_record.Term) -> bool:
        """A record that permits every address of a host permits the host."""
        if wanted.name != "a":
            return False
        answer = await self._dns.addresses(wanted.value or domain)
        if isinstance(answer, resolver.Failure) or not 0 < len(answer.records) <= MAX_ADDRESSES:
            return False
        ip4, ip6 = wanted.lengths
        words = [f"ip6:{one}/{ip6}" if ":" in one else f"ip4:{one}/{ip4}" for one in answer.records]
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
        """The mail hosts of a domain."""
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
