"""The figures of a run: what one round of one peer gave, and the median over its rounds.

Costs are microseconds of CPU per message, split by who spent them: `service` (the peer's own processes), `store` (a
database server beside it), `injector`, `sink` (where mail or events end), and `rest` (kernel threads such as the
journal's, and whatever else ran).
"""

import dataclasses
import statistics
import typing

from benchmarks import measure
from benchmarks.injectors import injection

PARTS = ("service", "store", "injector", "sink", "rest")
# The parts whose memory an operator needs.
OPERATED = ("service", "store")
# Kernel threads took 4 % on a quiet machine; a round with three times that shared its cores with somebody.
NOISY_PERCENT = 12.0
# How the names of those begin that are measured beside us.
OTHERS = ("Postfix", "Haraka", "Exim", "OpenSMTPD", "chasquid")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One measured round. `problems` is empty when every message was handled once and accounted for."""

    peer: str
    messages_per_second: float
    messages: int
    cpu_microseconds: dict[str, float]
    busy_percent: float
    rest_percent: float
    stolen_percent: float
    p50_milliseconds: float | None
    p99_milliseconds: float | None
    memory_mebibytes: dict[str, float]
    problems: tuple[str, ...]


def of_round(
    peer: str,
    *,
    messages_per_second: float,
    sent: injection.Injection,
    cost: measure.Cost,
    cores: int,
    problems: typing.Iterable[str],
) -> Round:
    """Bring an injection and the costs of its window together."""
    spent = dict(cost.cpu_seconds)
    if sent.cpu_seconds is not None:
        spent["injector"] = sent.cpu_seconds
    spent["rest"] = max(cost.machine_busy_seconds - sum(spent.values()), 0.0)
    available = cost.seconds * cores
    return Round(
        peer=peer,
        messages_per_second=messages_per_second,
        messages=sent.sent,
        cpu_microseconds={part: seconds * 1e6 / max(sent.sent, 1) for part, seconds in spent.items()},
        busy_percent=100 * cost.machine_busy_seconds / available,
        rest_percent=100 * spent["rest"] / available,
        stolen_percent=100 * cost.machine_stolen_seconds / available,
        p50_milliseconds=sent.latency.p50 if sent.latency else None,
        p99_milliseconds=sent.latency.p99 if sent.latency else None,
        memory_mebibytes={part: size / 2**20 for part, size in cost.memory_bytes.items()},
        problems=tuple(problems),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A peer's medians over its rounds, with the slowest and the fastest round beside them.

    `ratio` is to the rate of `reference`; without a reference in the run neither is known.
    """

    peer: str
    rounds: int
    messages: int
    messages_per_second: float
    slowest: float
    fastest: float
    ratio: float | None
    cpu_microseconds: dict[str, float]
    busy_percent: float
    p50_milliseconds: float | None
    p99_milliseconds: float | None
    memory_mebibytes: float
    noisy_rounds: int
    problems: tuple[str, ...]
    reference: str | None = None


def is_ours(peer: str) -> bool:
    """Whether a peer is Postroad, in any of its forms."""
    return not peer.startswith(OTHERS)


def summarise(rounds: typing.Sequence[Round], *, reference: str) -> list[Summary]:
    """Medians by peer, in the order of their first round; the ratio is to the median of `reference`."""
    peers = list(dict.fromkeys(run.peer for run in rounds))
    by_peer = {peer: [run for run in rounds if run.peer == peer] for peer in peers}
    rate = _median([run.messages_per_second for run in by_peer.get(reference, [])])
    return [_summary(by_peer[peer], reference=reference, reference_rate=rate) for peer in peers]


def _summary(rounds: typing.Sequence[Round], *, reference: str, reference_rate: float | None) -> Summary:
    rates = [run.messages_per_second for run in rounds]
    rate = statistics.median(rates)
    parts = [part for part in PARTS if part in rounds[0].cpu_microseconds]
    return Summary(
        peer=rounds[0].peer,
        rounds=len(rounds),
        messages=sum(run.messages for run in rounds),
        messages_per_second=rate,
        slowest=min(rates),
        fastest=max(rates),
        ratio=rate / reference_rate if reference_rate else None,
        cpu_microseconds={part: statistics.median(run.cpu_microseconds[part] for run in rounds) for part in parts},
        busy_percent=statistics.median(run.busy_percent for run in rounds),
        p50_milliseconds=_median([run.p50_milliseconds for run in rounds]),
        p99_milliseconds=_median([run.p99_milliseconds for run in rounds]),
        memory_mebibytes=max(sum(run.memory_mebibytes.get(part, 0) for part in OPERATED) for run in rounds),
        noisy_rounds=sum(run.rest_percent + run.stolen_percent > NOISY_PERCENT for run in rounds),
        problems=tuple(problem for run in rounds for problem in run.problems),
        reference=reference if reference_rate else None,
    )


def _median(values: typing.Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
