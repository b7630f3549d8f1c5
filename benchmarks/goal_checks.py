"""A goal, what was measured, and whether that is enough: a value that each report carries beside its figures.

The sentence in a benchmark's own page and the row in RESULTS.md both come from it, so they cannot differ.
"""

import dataclasses
import typing

from benchmarks import figures

# The service's own processes, in every benchmark but the one with large messages, which has a goal of its own.
MAX_MEGABYTES = 250.0
MEGABYTES_OF_MEBIBYTE = 2**20 / 1e6
DOUBT = "no proof: the machine was busy, or the rounds disagree"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One peer's figure beside its limit. `unit` follows the number: "times Postfix", "% of …", "MB".

    `mark` is the limit as a rate, where it is one: a chart of rates draws it. A figure `in_doubt` proves
    nothing, whatever it says: others used the machine, or some rounds reach the goal and others do not.
    """

    peer: str
    value: float
    side: typing.Literal["at least", "at most"]
    limit: float
    unit: str
    mark: float | None = None
    in_doubt: bool = False

    @property
    def is_reached(self) -> bool:
        """Whether the value is on the right side of the limit."""
        return self.value >= self.limit if self.side == "at least" else self.value <= self.limit

    @property
    def wish(self) -> str:
        """What is wanted."""
        return f"{self.side} {self.limit:g} {self.unit}"

    @property
    def measured(self) -> str:
        """What was found."""
        return f"{number(self.value)} {self.unit}"

    def sentence(self) -> str:
        """The goal for the page of its benchmark."""
        outcome = "reached" if self.is_reached else "NOT reached"
        doubt = f" ({DOUBT})" if self.in_doubt else ""
        return f"{self.peer}: {self.measured}; the goal of {self.side} {self.limit:g} is {outcome}{doubt}."


def of_ratios(summaries: typing.Sequence[figures.Summary], *, reference: str, times: float) -> list[Goal]:
    """How many times as fast as the reference each of our variants is; in doubt if either of the two was disturbed."""
    base = next((summary for summary in summaries if summary.peer == reference), None)
    return [
        Goal(
            peer=summary.peer,
            value=summary.ratio,
            side="at least",
            limit=times,
            unit=f"times {reference}",
            mark=summary.messages_per_second / summary.ratio * times,
            in_doubt=base is not None and (is_noisy((summary, base)) or is_open(summary, base, limit=times)),
        )
        for summary in summaries
        if summary.ratio is not None and figures.is_ours(summary.peer)
    ]


def of_share(
    one: figures.Summary, *, alone: figures.Summary, percent: float, of_what: str, in_doubt: bool = False
) -> Goal:
    """How much of a rate is left when something is in the way."""
    return Goal(
        peer=one.peer,
        value=100 * one.messages_per_second / alone.messages_per_second,
        side="at least",
        limit=percent,
        unit=f"% of {of_what}",
        mark=alone.messages_per_second * percent / 100,
        in_doubt=in_doubt or is_open(one, alone, limit=percent / 100),
    )


def of_memory(rounds: typing.Iterable[figures.Round]) -> list[Goal]:
    """The most that the service's own processes held, for each of our variants."""
    most: dict[str, float] = {}
    for run in rounds:
        if figures.is_ours(run.peer):
            held = run.memory_mebibytes.get("service", 0.0) * MEGABYTES_OF_MEBIBYTE
            most[run.peer] = max(most.get(run.peer, 0.0), held)
    return [Goal(peer=peer, value=held, side="at most", limit=MAX_MEGABYTES, unit="MB") for peer, held in most.items()]


def is_noisy(summaries: typing.Iterable[figures.Summary]) -> bool:
    """Whether a ratio between these proves nothing: noise hurts a peer that fills all cores more than others."""
    return any(summary.noisy_rounds for summary in summaries)


def is_open(one: figures.Summary, base: figures.Summary, *, limit: float) -> bool:
    """Whether the ratio of two rates reaches the limit with some of their rounds and misses it with others."""
    return one.slowest / base.fastest < limit <= one.fastest / base.slowest


def number(value: float) -> str:
    """Three digits that say something: 1.33, 97.9, 1,250."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"
