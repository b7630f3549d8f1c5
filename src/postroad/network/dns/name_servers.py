"""Asks name servers over UDP, and over TCP for long answers, one after the other and again until the time is over.

A server that refuses, or whose answer is refused, is not asked again; one that is silent is. Each question has a socket
of its own, whose port nobody can guess (RFC 5452 section 9.2), and only what the server sends reaches it.
"""

import asyncio
import os
import random
from collections.abc import Iterable, Sequence
from typing import Final, Generic

import msgspec

from postroad import config
from postroad.protocol.dns import answer_limits, messages

DNS_PORT: Final = 53
# Fits into one unfragmented packet on any path (DNS flag day 2020).
UDP_BYTES: Final = 1232
# More mail hosts or addresses than any real domain has.
MAX_RECORDS: Final = 100
# How long to wait before all servers are asked again: at first, and at the most.
FIRST_PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 2.0
SILENCE: Final = "no answer in time"
SYSTEM_SETTINGS: Final = "/etc/resolv.conf"


class Failure(msgspec.Struct, frozen=True):
    """No answer; `detail` is the reason."""

    detail: str


class _UnusableAnswer(Exception):
    """The server has answered, but not the question; the text says how."""


class NameServers:
    """Servers to ask in their order, or in any order."""

    def __init__(
        self,
        servers: Sequence[config.Endpoint],
        *,
        try_seconds: float,
        query_seconds: float,
        in_any_order: bool = False,
    ) -> None:
        self.servers = tuple(servers)
        self.in_any_order = in_any_order
        self._try_seconds = try_seconds
        self._query_seconds = query_seconds

    async def ask(
        self, question: bytes, kind: messages.RecordType[messages.Record]
    ) -> messages.Answer[messages.Record] | Failure:
        """The answer of the first server that has one; a name that does not exist is an answer."""
        loop = asyncio.get_running_loop()
        deadline, pause, detail = loop.time() + self._query_seconds, FIRST_PAUSE_SECONDS, ""
        servers = list(self.servers)
        if self.in_any_order:
            random.shuffle(servers)
        while servers:
            for server in tuple(servers):
                seconds = min(self._try_seconds, deadline - loop.time())
                if seconds <= 0:
                    return Failure(detail or SILENCE)
                try:
                    return await self._ask(server, question, kind, seconds=seconds)
                except TimeoutError:
                    pass
                except _UnusableAnswer as problem:
                    servers.remove(server)
                    detail = str(problem)
                except OSError as problem:
                    servers.remove(server)
                    detail = detail or f"no usable answer ({type(problem).__name__})"
            if servers:
                await asyncio.sleep(max(0.0, min(pause, deadline - loop.time())))
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
        return Failure(detail)

    async def _ask(
        self,
        server: config.Endpoint,
        question: bytes,
        kind: messages.RecordType[messages.Record],
        *,
        seconds: float,
    ) -> messages.Answer[messages.Record]:
        query = messages.query(question, query_id=os.urandom(2), udp_bytes=UDP_BYTES)
        loop = asyncio.get_running_loop()
        exchange = _Exchange(query, question, kind, loop.create_future())
        transport, _ = await loop.create_datagram_endpoint(lambda: exchange, remote_addr=server)
        alarm = loop.call_later(seconds, exchange.time_out)
        try:
            answer = await exchange.answer
        finally:
            alarm.cancel()
            transport.close()
        if answer.is_truncated:
            async with asyncio.timeout(seconds):
                answer = await _ask_over_tcp(server, query, question, kind)
        if answer.code not in {messages.NO_ERROR, messages.NXDOMAIN}:
            raise _UnusableAnswer(messages.CODES.get(answer.code, f"RCODE{answer.code}"))
        return answer


class _Exchange(asyncio.DatagramProtocol, Generic[messages.Record]):
    """A question, until its answer comes. Nothing else ends the wait, unless it is too costly to read."""

    def __init__(
        self,
        query: bytes,
        question: bytes,
        kind: messages.RecordType[messages.Record],
        answer: asyncio.Future[messages.Answer[messages.Record]],
    ) -> None:
        self.answer = answer
        self._query = query
        self._question = question
        self._kind = kind

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        transport.sendto(self._query)

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002 - the socket is connected
        if self.answer.done() or data[:2] != self._query[:2]:
            return
        try:
            self.answer.set_result(_read(data, self._question, self._kind))
        except messages.BadAnswer:
            return
        except _UnusableAnswer as problem:
            self.answer.set_exception(problem)

    def error_received(self, exc: Exception) -> None:
        """Perhaps forged, or only for a moment: keep waiting."""

    def time_out(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(TimeoutError())


async def _ask_over_tcp(
    server: config.Endpoint, query: bytes, question: bytes, kind: messages.RecordType[messages.Record]
) -> messages.Answer[messages.Record]:
    """A message follows its length in two bytes (RFC 1035 section 4.2.2)."""
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(len(query).to_bytes(2) + query)
        wire = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
        answer = _read(wire, question, kind)
    except (messages.BadAnswer, asyncio.IncompleteReadError) as problem:
        raise _UnusableAnswer(f"no usable answer ({type(problem).__name__})") from None
    finally:
        writer.transport.abort()
    if answer.is_truncated or wire[:2] != query[:2]:
        raise _UnusableAnswer("no usable answer (truncated, or to another query)")
    return answer


def _read(wire: bytes, question: bytes, kind: messages.RecordType[messages.Record]) -> messages.Answer[messages.Record]:
    refusal = answer_limits.why_refused(wire)
    if refusal is not None:
        raise _UnusableAnswer(refusal)
    return messages.read(wire, question, kind, max_records=MAX_RECORDS)


def of_system(settings: Iterable[str]) -> tuple[list[config.Endpoint], bool]:
    """The servers of the lines of resolv.conf(5), and whether they are asked in any order.

    Without any it is the one on this host, as for the C library.
    """
    servers: list[config.Endpoint] = []
    in_any_order = False
    for line in settings:
        words = line.split()
        if words[:1] == ["nameserver"] and len(words) > 1:
            servers.append(config.Endpoint(words[1], DNS_PORT))
        elif words[:1] == ["options"] and "rotate" in words:
            in_any_order = True
    return servers or [config.Endpoint("127.0.0.1", DNS_PORT)], in_any_order
