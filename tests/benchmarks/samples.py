"""Results of benchmarks as a test wants them: figures that are easy to reckon with."""

import pathlib

from benchmarks import figures, goal_checks, report

FACTS = {"cores": "2", "measured": "2026-11-01 10:00 UTC", "commit": "abc", "command": "python -m benchmarks.accept"}


def round_of(
    peer: str, rate: float, *, memory: float = 100, noise: float = 0, problems: tuple[str, ...] = ()
) -> figures.Round:
    """One round in which a peer did `rate` messages a second."""
    return figures.Round(
        peer=peer,
        messages_per_second=rate,
        messages=int(rate * 10),
        cpu_microseconds={"service": 400.0, "rest": 4.0},
        busy_percent=50,
        rest_percent=noise,
        stolen_percent=0,
        p50_milliseconds=None,
        p99_milliseconds=None,
        memory_mebibytes={"service": memory, "store": 1000.0},
        problems=problems,
    )


def report_of(*rounds: figures.Round, times: float = 3) -> report.Report:
    """A run of these rounds, compared with Postfix."""
    summaries = figures.summarise(rounds, reference="Postfix")
    return report.Report(
        title="Accepts",
        description="How it was done.",
        facts=FACTS,
        summaries=summaries,
        rounds=list(rounds),
        gaps=[],
        goals=goal_checks.of_ratios(summaries, reference="Postfix", times=times),
    )


def write(folder: pathlib.Path, result: report.Report, *, name: str = "accept") -> None:
    """Put it where the page looks for it."""
    report.write(result, folder=folder / "results", name=name)
