"""The result of a benchmark, for people (terminal, Markdown) and for programs (JSON), from one and the same value."""

import dataclasses
import json
import pathlib
import typing

from benchmarks import figures

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
    """A whole run. `gaps` says what is missing from it, and what to do about it."""

    title: str
    description: str
    facts: dict[str, str]
    summaries: list[figures.Summary]
    rounds: list[figures.Round]
    verdicts: list[str]
    gaps: list[str]
    unit: str = "message"


def write(report: Report, *, folder: pathlib.Path, name: str) -> None:
    """Write `<name>.md` and `<name>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(markdown(report))
    (folder / f"{name}.json").write_text(json.dumps(dataclasses.asdict(report), indent=2, ensure_ascii=False) + "\n")


def markdown(report: Report) -> str:
    """The page that goes into the repository."""
    head, *rows = table(report.summaries, unit=report.unit)
    rows = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        [
            f"# {report.title}",
            "",
            report.description,
            "",
            *(f"| {' | '.join(cells)} |" for cells in rows),
            "",
            *(f"- {line}" for line in _remarks(report)),
            "",
            "| fact | value |",
            "| --- | --- |",
            *(f"| {name} | {value} |" for name, value in report.facts.items()),
            "",
        ]
    )


def terminal(report: Report) -> str:
    """The same table in columns of their own width, one peer a line."""
    rows = table(report.summaries, unit=report.unit)
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows]
    return "\n".join([report.title, "", *lines, "", *_remarks(report)])


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


def _remarks(report: Report) -> typing.Iterator[str]:
    yield from report.verdicts
    yield from (f"PROBLEM, {summary.peer}: {text}" for summary in report.summaries for text in summary.problems)
    for summary in report.summaries:
        if summary.noisy_rounds:
            yield (
                f"NOISE, {summary.peer}: in {summary.noisy_rounds} of {summary.rounds} rounds other programs used more "
                f"than {figures.NOISY_PERCENT:.0f} % of the machine; repeat on a quiet one."
            )
    yield from (f"INCOMPLETE: {gap}" for gap in report.gaps)


def _number(value: float | None, *, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"
