"""What a simulated message costs: the only place that takes figures from the benchmarks.

A host has one core for its writer, which stores, claims, sends and records; frontends and signatures have cores of
their own and are left out. The database server has cores that all hosts share. The costs are those at full load, where
many messages share a transaction: enough to see who waits for whom, and too little to plan processors.
"""

import json
import pathlib
import typing

import msgspec

RESULTS = pathlib.Path(__file__).parents[1] / "results"
PATH = "end to end, signed"
PEER = "Postroad, PostgreSQL, signed"
# Phases of benchmarks/phases.py by what they are part of; the others are those of frontends and signers.
ACCEPT_PHASES = ("store",)
CLAIM_PHASES = ("claim", "prepare", "sign")
RESULT_PHASES = ("send", "record", "log", "event loop", "transactions", "commit")
# Not measured: a flush of a disk with a battery or of a cloud volume.
COMMIT_SECONDS = 0.002
# A look at one scheduled queue: of the host, as the simulation measured it for a destination that is down, and of the
# server, where it is a guess.
QUEUE_KEY_SECONDS = 1e-5
SERVER_QUEUE_KEY_SECONDS = 3e-6


class Costs(msgspec.Struct, frozen=True):
    """Seconds for a message: of a host's core, and of a core of the database server."""

    accept: float
    claim: float
    result: float
    server_accept: float
    server_claim: float
    server_result: float
    commit: float = COMMIT_SECONDS
    queue_key: float = QUEUE_KEY_SECONDS
    server_queue_key: float = SERVER_QUEUE_KEY_SECONDS


def measured() -> Costs:
    """The costs that the benchmarks have found. The server's cost of a delivery is that of its claim and its result."""
    phases = next(cost["microseconds"] for cost in _read("costs")["costs"] if cost["path"] == PATH)
    accept = _server_microseconds("accept", "Postroad, PostgreSQL")
    delivery = _server_microseconds("deliver", PEER) - accept
    host = [sum(phases[phase] for phase in part) for part in (ACCEPT_PHASES, CLAIM_PHASES, RESULT_PHASES)]
    return Costs(*(microseconds / 1e6 for microseconds in (*host, accept, delivery / 2, delivery / 2)))


def _server_microseconds(benchmark: str, peer: str) -> float:
    found = next(summary for summary in _read(benchmark)["summaries"] if summary["peer"] == peer)
    return float(found["cpu_microseconds"]["store"])


def _read(benchmark: str) -> dict[str, typing.Any]:
    found: dict[str, typing.Any] = json.loads((RESULTS / f"{benchmark}.json").read_text())
    return found


class Core:
    """A processor, or several that are as fast as one of their sum: work is done in the order in which it comes."""

    def __init__(self, cores: float = 1.0) -> None:
        self._cores = cores
        self._busy_until = 0.0

    def work(self, now: float, seconds: float) -> float:
        """When the work is done that is asked for now."""
        self._busy_until = max(now, self._busy_until) + seconds / self._cores
        return self._busy_until
