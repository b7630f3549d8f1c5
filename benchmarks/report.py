"""The result of a benchmark, for people (terminal, Markdown) and for programs (JSON), from one and the same value."""

import dataclasses
import json
import pathlib
import statistics
import typing

import msgspec

from benchmarks import figures, goal_checks

COLUMNS = (
    "peer",
    "messages/s",
    "slowest to fastest",
    "times Postfix",
    "CPU µs/message: service",
    "store",
    "injector",
    "sink",
    "rest",
    "machine busy",
    "p50 ms",
    "p99 ms",
    "memory MiB",
    "messages",
    "problems",
)
NOTHING = "-"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run. `gaps` says what is missing from it, and what to do about it; `verdicts`, what no goal says."""

    title: str
    description: str
    facts: dict[str, str]
    summaries: list[figures.Summary]
    rounds: list[figures.Round]
    gaps: list[str]
    unit: str = "message"
    verdicts: list[str] = dataclasses.field(default_factory=list)
    goals: list[goal_checks.Goal] = dataclasses.field(default_factory=list)


def write(report: Report, *, folder: pathlib.Path, name: str) -> None:
    """Write `<name>.md` and `<name>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(markdown(report))
    (folder / f"{name}.json").write_text(json.dumps(dataclasses.asdict(report), indent=2, ensure_ascii=False) + "\n")


def read(path: pathlib.Path) -> Report:
    """What `write` wrote."""
    return msgspec.json.decode(path.read_bytes(), type=Report)


def markdown(report: Report) -> str:
    """The page that goes into the repository."""
    return "\n".join(
        [
            f"# {report.title}",
            "",
            report.description,
            "",
            *markdown_table(table(report.summaries, unit=report.unit)),
            "",
            *(f"- {line}" for line in remarks(report)),
            "",
            *markdown_table([("fact", "value"), *report.facts.items()]),
            "",
        ]
    )


def percentile(values: typing.Sequence[float], percent: int) -> float:
    """A percentile of at least two values."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def markdown_table(rows: typing.Iterable[typing.Sequence[str]]) -> typing.Iterator[str]:
    """The lines of a table whose first row is its head."""
    for number, cells in enumerate(rows):
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"| {' | '.join('---' for _ in cells)} |"


def terminal(report: Report) -> str:
    """The same table in columns of their own width, one peer a line."""
    rows = table(report.summaries, unit=report.unit)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows]
    return "\n".join([report.title, "", *lines, "", *remarks(report)])


def table(summaries: typing.Sequence[figures.Summary], *, unit: str) -> list[tuple[str, ...]]:
    """The head and a row for each peer, without the columns in which no peer has a value."""
    head = tuple(name.replace("message", unit) for name in COLUMNS)
    rows = [row(summary) for summary in summaries]
    used = [n for n in range(len(COLUMNS)) if any(cells[n] != NOTHING for cells in rows)]
    return [tuple(cells[n] for n in used) for cells in (head, *rows)]


def row(summary: figures.Summary) -> tuple[str, ...]:
    """One peer's cells, in the order of COLUMNS."""
    cpu = summary.cpu_microseconds
    return (
        summary.peer,
        f"{summary.messages_per_second:,.0f}",
        f"{summary.slowest:,.0f} to {summary.fastest:,.0f}",
        _number(summary.ratio, digits=2),
        *(_number(cpu.get(part)) for part in figures.PARTS),
        f"{summary.busy_percent:.0f} %",
        _number(summary.p50_milliseconds, digits=1),
        _number(summary.p99_milliseconds, digits=1),
        f"{summary.memory_mebibytes:.0f}",
        f"{summary.messages:,}",
        str(len(summary.problems)),
    )


def remarks(report: Report) -> typing.Iterator[str]:
    """What the figures mean, and what is wrong or missing."""
    yield from (goal.sentence() for goal in report.goals)
    yield from report.verdicts
    yield from _faster_peers(report.summaries)
    yield from (f"PROBLEM, {summary.peer}: {text}" for summary in report.summaries for text in summary.problems)
    for summary in report.summaries:
        if summary.noisy_rounds:
            yield (
                f"NOISE, {summary.peer}: in {summary.noisy_rounds} of {summary.rounds} rounds other programs used more "
                f"than {figures.NOISY_PERCENT:.0f} % of the machine; repeat on a quiet one."
            )
    yield from (f"INCOMPLETE: {gap}" for gap in report.gaps)


def _faster_peers(summaries: typing.Sequence[figures.Summary]) -> typing.Iterator[str]:
    """Where we are not first: those of the others that are faster than one of ours with the same reference."""
    for ours in summaries:
        for other in summaries:
            is_comparable = other.reference == ours.reference and not figures.is_ours(other.peer)
            faster = other.messages_per_second / ours.messages_per_second if ours.messages_per_second else 0.0
            if figures.is_ours(ours.peer) and is_comparable and faster > 1:
                yield f"NOT FIRST, {ours.peer}: {other.peer} is {faster:.2f} times as fast."


def _number(value: float | None, *, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"
