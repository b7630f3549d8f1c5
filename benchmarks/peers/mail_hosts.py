"""Many destinations on loopback: each domain has its own MX host, with its own address and its own `smtp-sink`.

One more domain may be dead: its host refuses connections, or accepts them and never replies. All hosts listen on
one port, because the service knows only one.
"""

import collections.abc
import contextlib
import dataclasses
import pathlib
import socket
import typing

from benchmarks.peers import name_server, process, smtp_sink

Death = typing.Literal["refuses", "hangs"]
DEAD_DOMAIN = "dead.example.org"
DEAD_ADDRESS = "127.0.2.1"
SHARED_ADDRESS = "127.0.3.1"
# The domain of the recipient `n`, in SQL: the healthy ones take turns.
HEALTHY_DOMAIN = "'d' || (n % {domains}) || '.example.org'"
# The same with the dead one, which has as many turns as ten of them.
DEAD_TURNS = 10
MIXED_DOMAIN = (
    "CASE WHEN n % ({domains} + {turns}) < {domains} THEN 'd' || (n % ({domains} + {turns})) || '.example.org' "
    "ELSE '{dead}' END"
)
# More than a service opens to one host: the system itself completes them, and nobody takes them.
UNANSWERED_CONNECTIONS = 128


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """The running hosts of the healthy domains, and where they are found."""

    sinks: tuple[smtp_sink.Sink, ...]
    port: int
    name_server: str

    @property
    def pids(self) -> tuple[int, ...]:
        """Their processes."""
        return tuple(sink.pid for sink in self.sinks)

    def counts(self) -> list[int]:
        """How many messages each has taken."""
        return [sink.messages() for sink in self.sinks]


def domain_expression(domains: int, *, with_dead: bool) -> str:
    """The domain of each recipient for `backlog.pile`."""
    if with_dead:
        return MIXED_DOMAIN.format(domains=domains, turns=DEAD_TURNS, dead=DEAD_DOMAIN)
    return HEALTHY_DOMAIN.format(domains=domains)


@contextlib.contextmanager
def running(folder: pathlib.Path, *, domains: int, death: Death | None) -> typing.Iterator[Hosts]:
    """So many healthy hosts, and a dead one if it is said how; stopped at the end."""
    addresses = {f"d{number}.example.org": f"127.0.1.{number + 1}" for number in range(domains)}
    port = process.free_port()
    with contextlib.ExitStack() as stack:
        sinks = [
            stack.enter_context(smtp_sink.running(folder / domain, address=address, port=port))
            for domain, address in addresses.items()
        ]
        if death == "hangs":
            listener = stack.enter_context(socket.socket())
            listener.bind((DEAD_ADDRESS, port))
            listener.listen(UNANSWERED_CONNECTIONS)
        names = stack.enter_context(name_server.running(_records({**addresses, DEAD_DOMAIN: DEAD_ADDRESS})))
        yield Hosts(sinks=tuple(sinks), port=port, name_server=names)


class EveryDomain(collections.abc.Mapping[tuple[str, str], str]):
    """Any domain under `example.org` has a mail host of its own name; all of them have one address."""

    def __getitem__(self, question: tuple[str, str]) -> str:
        name, kind = question
        if kind == "A" and name.startswith("mx."):
            return SHARED_ADDRESS
        if kind == "MX" and name.endswith(".example.org"):
            return f"10 mx.{name}."
        raise KeyError(question)

    def __iter__(self) -> typing.Iterator[tuple[str, str]]:
        return iter(())

    def __len__(self) -> int:
        return 0


@contextlib.contextmanager
def behind_one_address(folder: pathlib.Path) -> typing.Iterator[Hosts]:
    """Hosts of any number of domains, which one sink serves: more than there could be sinks."""
    port = process.free_port()
    with (
        smtp_sink.running(folder, address=SHARED_ADDRESS, port=port) as sink,
        name_server.running(EveryDomain()) as names,
    ):
        yield Hosts(sinks=(sink,), port=port, name_server=names)


def _records(addresses: typing.Mapping[str, str]) -> name_server.Records:
    records: dict[tuple[str, str], str] = {}
    for domain, address in addresses.items():
        records[domain, "MX"] = f"10 mx.{domain}."
        records[f"mx.{domain}", "A"] = address
    return records
