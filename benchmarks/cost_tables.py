"""The costs of a message as a page: phases against paths, and the costliest functions of each phase."""

import dataclasses
import typing

from benchmarks import phases

NOTHING = "-"
# So many functions of a phase stand on the page; the JSON has more.
FUNCTIONS = 5


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a message costs on one path: microseconds of CPU by phase, and in all when nobody looks."""

    path: str
    messages: int
    samples: int
    microseconds: dict[str, float]
    unsampled_microseconds: float
    functions: dict[str, phases.Functions]
    problems: tuple[str, ...]

    @property
    def total(self) -> float:
        """What the phases are parts of."""
        return sum(self.microseconds.values())


def page(
    costs: typing.Sequence[Cost], *, description: str, facts: typing.Mapping[str, str], gaps: typing.Sequence[str]
) -> str:
    """The page that goes into the repository."""
    return "\n".join(
        [
            "# What a message costs",
            "",
            description,
            "",
            *_lines(_by_phase(costs)),
            "",
            *(f"- {remark}" for remark in _remarks(costs, gaps)),
            "",
            *(line for cost in costs for line in _functions(cost)),
            *_lines([("fact", "value"), *facts.items()]),
            "",
        ]
    )


def _by_phase(costs: typing.Sequence[Cost]) -> list[tuple[str, ...]]:
    head = ["phase", "what it is"]
    for cost in costs:
        head += [f"{cost.path}: µs", "%"]
    rows = [tuple(head)]
    for phase, what in phases.PHASES.items():
        if any(cost.microseconds.get(phase) for cost in costs):
            rows.append((phase, what, *(cell for cost in costs for cell in _cells(cost, phase))))
    rows.append(("all", "the sum", *(cell for cost in costs for cell in (f"{cost.total:,.0f}", "100"))))
    return rows


def _cells(cost: Cost, phase: str) -> tuple[str, str]:
    microseconds = cost.microseconds.get(phase)
    if not microseconds:
        return NOTHING, NOTHING
    return f"{microseconds:,.0f}", f"{100 * microseconds / cost.total:.1f}"


def _remarks(costs: typing.Sequence[Cost], gaps: typing.Sequence[str]) -> typing.Iterator[str]:
    for cost in costs:
        percent = 100 * (cost.total / cost.unsampled_microseconds - 1)
        yield (
            f"{cost.path}: {cost.samples:,} samples of {cost.messages:,} messages. Without sampling a message costs "
            f"{cost.unsampled_microseconds:,.0f} µs, so sampling costs {percent:+.1f} %."
        )
    yield from (f"PROBLEM, {cost.path}: {problem}" for cost in costs for problem in cost.problems)
    yield from (f"INCOMPLETE: {gap}" for gap in gaps)


def _functions(cost: Cost) -> typing.Iterator[str]:
    yield f"## The costliest functions: {cost.path}"
    yield ""
    yield "Microseconds a message: with all that they call within the phase, and alone, with the C that they call."
    yield ""
    rows = [
        (phase, _cells(cost, phase)[0], _named(found.inclusive), _named(found.own))
        for phase in phases.PHASES
        if (found := cost.functions.get(phase))
    ]
    yield from _lines([("phase", "µs", "with what they call", "alone"), *rows])
    yield ""


def _named(functions: typing.Sequence[phases.Costliest]) -> str:
    return ", ".join(f"`{function.function}` {function.microseconds:.0f}" for function in functions[:FUNCTIONS])


def _lines(rows: typing.Sequence[tuple[str, ...]]) -> typing.Iterator[str]:
    head, *others = rows
    for cells in (head, tuple("---" for _ in head), *others):
        yield f"| {' | '.join(cells)} |"
