"""DNS queries by dnspython, over UDP, and TCP for long answers; `resolver.py` imports this with its first query.

A question takes a millisecond or more of the processor, and mail to many new domains asks hundreds a second. So they
have an event loop in a thread of their own: that of the callers gets the interpreter lock in between.
"""

import asyncio
import functools
import itertools
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.nameserver
import dns.rdatatype
import dns.resolver

from postroad import config
from postroad.concurrency import fairness
from postroad.network.dns import dns_sockets, resolver


class DnsQueries:
    """Asks the given name servers, or those of the system when none are given."""

    def __init__(
        self, servers: Sequence[config.Endpoint], *, try_seconds: float, query_seconds: float, max_concurrent: int
    ) -> None:
        self._resolver = _configured(servers) if servers else _system_resolver()
        self._resolver.timeout = try_seconds
        self._resolver.lifetime = query_seconds
        self._resolver.use_edns(0, 0, resolver.UDP_BYTES)
        self._resolver.set_flags(dns.flags.RD | dns.flags.AD)
        self._backend = dns_sockets.Backend()
        self._free = fairness.FairSemaphore(max_concurrent)

    async def query(
        self, name: str, kind: str, read: Callable[[Any], resolver.Record]
    ) -> resolver.Answer[resolver.Record] | resolver.Failure:
        """One question. A name that cannot be written into a packet does not exist."""
        try:
            question = dns.name.from_text(name.encode("ascii").decode(), dns.name.root)
        except (dns.exception.DNSException, UnicodeError):
            return resolver.Answer((), ttl=resolver.MAX_NEGATIVE_TTL_SECONDS, exists=False)
        async with self._free.hold(resolver.asker.get()):
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._ask(question, kind, read), event_loop())
            )

    async def _ask(
        self, question: dns.name.Name, kind: str, read: Callable[[Any], resolver.Record]
    ) -> resolver.Answer[resolver.Record] | resolver.Failure:
        try:
            answer = await self._resolver.resolve(
                question, kind, raise_on_no_answer=False, search=False, backend=self._backend
            )
        except dns.resolver.NXDOMAIN as missing:
            return _empty(missing.kwargs["responses"][question], exists=False)
        except dns.exception.DNSException as problem:
            return resolver.Failure(_reason(problem))
        if answer.rrset is None:
            return _empty(answer.response, exists=True)
        records = tuple(read(record) for record in itertools.islice(answer.rrset, resolver.MAX_RECORDS))
        return resolver.Answer(
            records, ttl=answer.chaining_result.minimum_ttl, is_authentic=_is_authentic(answer.response)
        )


@functools.cache
def event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all questions of this process. Its thread ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="dns", daemon=True).start()
    return loop


# A fork has no threads of its parent.
os.register_at_fork(after_in_child=event_loop.cache_clear)


def _system_resolver() -> dns.asyncresolver.Resolver:
    try:
        return dns.asyncresolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        # The same default as the C library: a name server on this host.
        return _configured([config.Endpoint("127.0.0.1", resolver.DNS_PORT)])


def _configured(servers: Sequence[config.Endpoint]) -> dns.asyncresolver.Resolver:
    configured = dns.asyncresolver.Resolver(configure=False)
    configured.nameservers = [dns.nameserver.Do53Nameserver(host, port) for host, port in servers]
    return configured


def _empty(response: dns.message.QueryMessage, *, exists: bool) -> resolver.Answer[Any]:
    ttl = min(response.resolve_chaining().minimum_ttl, resolver.MAX_NEGATIVE_TTL_SECONDS)
    return resolver.Answer((), ttl=ttl, exists=exists, is_authentic=_is_authentic(response))


def _is_authentic(response: dns.message.Message) -> bool:
    return bool(response.flags & dns.flags.AD)


def _reason(problem: dns.exception.DNSException) -> str:
    """The last server's words when it had any, such as SERVFAIL, or why its answer was refused."""
    errors = problem.kwargs.get("errors") or ()
    for _, _, _, error, _ in reversed(errors):
        if isinstance(error, str | dns_sockets.AnswerRefused):
            return str(error)
    if isinstance(problem, dns.exception.Timeout):
        return "no answer in time"
    for _, _, _, error, _ in reversed(errors):
        return f"no usable answer ({type(error).__name__})"
    return type(problem).__name__
