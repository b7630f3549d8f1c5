"""DNS look-ups with answers that are small, typed and bounded; `name_servers.py` asks for them.

An answer is a value, and so is a failure: nothing that a name server does raises here. A name that does not exist
(NXDOMAIN) and a name without records of the type are different answers, because mail treats them differently. Names are
absolute; the search list of the system is not used. Queries set the AD flag (RFC 6840 section 5.7), which is as
trustworthy as the name servers and the path to them.
"""

import asyncio
import contextvars
import functools
import ipaddress
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from postroad import config
from postroad.concurrency import fairness
from postroad.model.delivery import tls_policy
from postroad.network.dns import name_servers
from postroad.protocol.dns import messages

# What a server that is alive needs at the most, and time for three tries.
TRY_SECONDS: Final = 2.0
QUERY_SECONDS: Final = 6.0
# Each holds a socket; name servers limit what one client asks at once. Those that ask share them.
MAX_CONCURRENT_QUERIES: Final = 100
# How long to believe that there is nothing (RFC 2308 section 5 allows hours; a forgotten record is soon added).
MAX_NEGATIVE_TTL_SECONDS: Final = 300

Record = TypeVar("Record")
# For whom the task under way looks something up, such as an account. The tasks that it starts inherit it, so a lookup
# that others join counts for the one that began it.
asker: contextvars.ContextVar[str] = contextvars.ContextVar("asker", default="")


class Mx(msgspec.Struct, frozen=True):
    """A mail host of a domain. The host is in lower case, without a final dot, and empty for the root (RFC 7505)."""

    preference: int
    host: str


class Answer(msgspec.Struct, Generic[Record], frozen=True):
    """What DNS says. Without records, `exists` tells a name that lacks them from a name that does not exist."""

    records: tuple[Record, ...]
    ttl: int
    exists: bool = True
    is_authentic: bool = False  # the resolver has validated it by DNSSEC (the AD flag)


Failure = name_servers.Failure


class Resolver:
    """Asks the given name servers, `address` or `address:port`, or those of the system when none are given."""

    def __init__(
        self,
        servers: Sequence[str] = (),
        *,
        try_seconds: float = TRY_SECONDS,
        query_seconds: float = QUERY_SECONDS,
        max_concurrent: int = MAX_CONCURRENT_QUERIES,
    ) -> None:
        self._servers = [_server(text) for text in servers]
        self._try_seconds = try_seconds
        self._query_seconds = query_seconds
        self._free = fairness.FairSemaphore(max_concurrent)

    async def mx(self, name: str) -> Answer[Mx] | Failure:
        """The mail hosts of a domain, in no order."""
        found = await self._query(name, messages.MX)
        if isinstance(found, Failure):
            return found
        hosts = tuple([Mx(preference, host) for preference, host in found.records])
        return Answer(hosts, found.ttl, exists=found.exists, is_authentic=found.is_authentic)

    async def txt(self, name: str) -> Answer[str] | Failure:
        """Texts, each with its strings joined (RFC 7208 section 3.3)."""
        return await self._query(name, messages.TXT)

    async def cname(self, name: str) -> Answer[str] | Failure:
        """The name that this one is an alias of, in lower case, without a final dot."""
        return await self._query(name, messages.CNAME)

    async def names(self, address: str) -> Answer[str] | Failure:
        """The names of an address (reverse DNS), in lower case, without a final dot."""
        return await self._query(ipaddress.ip_address(address).reverse_pointer, messages.PTR)

    async def tlsa(self, name: str) -> Answer[tls_policy.Tlsa] | Failure:
        """Associations of a name with certificates, usable or not."""
        found = await self._query(name, messages.TLSA)
        if isinstance(found, Failure):
            return found
        associations = tuple([tls_policy.Tlsa(*association) for association in found.records])
        return Answer(associations, found.ttl, exists=found.exists, is_authentic=found.is_authentic)

    async def ipv4(self, name: str) -> Answer[str] | Failure:
        return await self._query(name, messages.A)

    async def ipv6(self, name: str) -> Answer[str] | Failure:
        return await self._query(name, messages.AAAA)

    async def addresses(self, name: str) -> Answer[str] | Failure:
        """IPv4 and IPv6 addresses in turn, each in the order of the answer (RFC 5321 section 5.1).

        One of two failing questions is not missed when the other found something.
        """
        both = await asyncio.gather(self.ipv4(name), self.ipv6(name))
        answers = [answer for answer in both if isinstance(answer, Answer)]
        found = [answer for answer in answers if answer.records]
        for answer in both:
            if isinstance(answer, Failure) and not found:
                return answer
        in_turn = itertools.zip_longest(*(answer.records for answer in found))
        return Answer(
            tuple(address for pair in in_turn for address in pair if address is not None),
            ttl=min(answer.ttl for answer in found or answers),
            exists=any(answer.exists for answer in answers),
            is_authentic=all(answer.is_authentic for answer in answers),
        )

    async def _query(self, name: str, kind: messages.RecordType[Record]) -> Answer[Record] | Failure:
        """One question. A name that cannot be written into a packet does not exist."""
        question = messages.question_of(name, kind.number)
        if question is None:
            return Answer((), ttl=MAX_NEGATIVE_TTL_SECONDS, exists=False)
        async with self._free.hold(asker.get()):
            found = await self._name_servers.ask(question, kind)
        if isinstance(found, Failure):
            return found
        exists = found.code != messages.NXDOMAIN
        records = found.records if exists else ()
        ttl = found.ttl if records else min(found.ttl, MAX_NEGATIVE_TTL_SECONDS)
        return Answer(records, ttl, exists=exists, is_authentic=found.is_authentic)

    @functools.cached_property
    def _name_servers(self) -> name_servers.NameServers:
        servers, in_any_order = self._servers, False
        if not servers:
            servers, in_any_order = name_servers.of_system(_system_settings())
        return name_servers.NameServers(
            servers, try_seconds=self._try_seconds, query_seconds=self._query_seconds, in_any_order=in_any_order
        )


def _system_settings() -> Sequence[str]:
    try:
        return Path(name_servers.SYSTEM_SETTINGS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()


def _server(text: str) -> config.Endpoint:
    try:
        return config.Endpoint(str(ipaddress.ip_address(text)), name_servers.DNS_PORT)
    except ValueError:
        host, port = config.endpoint(text, name="delivery.resolvers")
    try:
        return config.Endpoint(str(ipaddress.ip_address(host)), port)
    except ValueError:
        msg = f"delivery.resolvers: {text!r} is a name; give the address of the DNS server, as address or address:port"
        raise config.ConfigError(msg) from None
