"""DNS look-ups with answers that are small, typed and bounded; `dns_queries.py` makes the queries.

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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from postroad import config
from postroad.model.delivery import tls_policy

if TYPE_CHECKING:
    from postroad.network.dns import dns_queries

DNS_PORT: Final = 53
# What a server that is alive needs at the most, and time for three tries.
TRY_SECONDS: Final = 2.0
QUERY_SECONDS: Final = 6.0
# Each holds a socket; name servers limit what one client asks at once. Those that ask share them.
MAX_CONCURRENT_QUERIES: Final = 100
# More mail hosts or addresses than any real domain has.
MAX_RECORDS: Final = 100
# Fits into one unfragmented packet on any path (DNS flag day 2020).
UDP_BYTES: Final = 1232
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


class Failure(msgspec.Struct, frozen=True):
    """No answer; `detail` is the reason."""

    detail: str


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
        self._max_concurrent = max_concurrent

    async def mx(self, name: str) -> Answer[Mx] | Failure:
        """The mail hosts of a domain, in no order."""
        return await self._query(
            name, "MX", lambda record: Mx(record.preference, record.exchange.to_text().lower().removesuffix("."))
        )

    async def txt(self, name: str) -> Answer[str] | Failure:
        """Texts, each with its strings joined (RFC 7208 section 3.3)."""
        return await self._query(name, "TXT", lambda record: b"".join(record.strings).decode(errors="replace"))

    async def cname(self, name: str) -> Answer[str] | Failure:
        """The name that this one is an alias of, in lower case, without a final dot."""
        return await self._query(name, "CNAME", lambda record: record.target.to_text().lower().removesuffix("."))

    async def names(self, address: str) -> Answer[str] | Failure:
        """The names of an address (reverse DNS), in lower case, without a final dot."""
        pointer = ipaddress.ip_address(address).reverse_pointer
        return await self._query(pointer, "PTR", lambda record: record.target.to_text().lower().removesuffix("."))

    async def tlsa(self, name: str) -> Answer[tls_policy.Tlsa] | Failure:
        """Associations of a name with certificates, usable or not."""
        return await self._query(
            name,
            "TLSA",
            lambda record: tls_policy.Tlsa(record.usage, record.selector, record.mtype, bytes(record.cert)),
        )

    async def addresses(self, name: str) -> Answer[str] | Failure:
        """IPv4 and IPv6 addresses in turn, each in the order of the answer (RFC 5321 section 5.1).

        One of two failing questions is not missed when the other found something.
        """
        both = await asyncio.gather(
            self._query(name, "A", lambda record: str(record.address)),
            self._query(name, "AAAA", lambda record: str(record.address)),
        )
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

    async def _query(self, name: str, kind: str, read: Callable[[Any], Record]) -> Answer[Record] | Failure:
        return await self._queries.query(name, kind, read)

    @functools.cached_property
    def _queries(self) -> "dns_queries.DnsQueries":
        from postroad.network.dns import dns_queries  # noqa: PLC0415 - a command without a query need not wait for dnspython

        return dns_queries.DnsQueries(
            self._servers,
            try_seconds=self._try_seconds,
            query_seconds=self._query_seconds,
            max_concurrent=self._max_concurrent,
        )


def _server(text: str) -> config.Endpoint:
    try:
        return config.Endpoint(str(ipaddress.ip_address(text)), DNS_PORT)
    except ValueError:
        host, port = config.endpoint(text, name="delivery.resolvers")
    try:
        return config.Endpoint(str(ipaddress.ip_address(host)), port)
    except ValueError:
        msg = f"delivery.resolvers: {text!r} is a name; give the address of the DNS server, as address or address:port"
        raise config.ConfigError(msg) from None
