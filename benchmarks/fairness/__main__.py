"""A simulation of shares of delivery connections: `python -m benchmarks.fairness`, a few minutes, no sockets.

Writes the table and the chart that docs/decisions/0013-fair-shares.md quotes.
"""

import argparse
import pathlib
import random
import time
import typing

from benchmarks import plots
from benchmarks.fairness import policies, scenarios, simulator

UNITS = 500
HERE = pathlib.Path(__file__).parent


def main() -> int:
    """Run every policy in every scenario, and write what was seen."""
    options = _options()
    found: dict[str, dict[str, simulator.Outcome]] = {}
    for scenario in scenarios.ALL:
        for name, policy in policies.ALL.items():
            began = time.monotonic()
            arrivals = scenario.arrivals(random.Random(options.seed))
            found.setdefault(scenario.name, {})[name] = simulator.Simulation(
                policy(UNITS), arrivals, measured_from=scenarios.MEASURED_FROM, seed=options.seed
            ).run(until=scenario.until)
            print(f"{scenario.name} | {_row(name, found[scenario.name][name])} {time.monotonic() - began:.1f} s")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "RESULTS.md").write_text(page(found))
    (options.output / "waits.svg").write_text(plots.svg(chart(found)))
    return 0


def page(found: typing.Mapping[str, typing.Mapping[str, simulator.Outcome]]) -> str:
    """The table."""
    lines = [
        "# Shares of delivery connections, simulated",
        "",
        "`python -m benchmarks.fairness` writes this page; [waits.svg](waits.svg) shows a part of it.",
        f"There are {UNITS} connections; the tables show how long mail of innocent accounts waits for one, in seconds.",
        "Healthy destinations take 0.3 s for a message (median), hostile ones minutes.",
        '"without end": the wait was not over when the simulation ended.',
        "",
    ]
    for scenario in scenarios.ALL:
        lines += [
            f"## {scenario.name}",
            "",
            scenario.about,
            "",
            "| policy | known hosts: p50 | p99 | new hosts: p50 | p99 | innocent messages/s | all | connections |",
            "|---|---|---|---|---|---|---|---|",
        ]
        seconds = scenario.until - scenarios.MEASURED_FROM
        lines += [_row(name, outcome, seconds) for name, outcome in found[scenario.name].items()]
        lines.append("")
    return "\n".join(lines)


def _row(name: str, outcome: simulator.Outcome, seconds: float = 1.0) -> str:
    waits = [_number(outcome.percentile(kind, part)) for kind in ("proven", "new") for part in (0.5, 0.99)]
    innocent = (outcome.sent["proven"] + outcome.sent["new"]) / seconds
    every = sum(outcome.sent.values()) / seconds
    return f"| {name} | {' | '.join(waits)} | {innocent:,.0f} | {every:,.0f} | {outcome.busiest} |"


def _number(seconds: float) -> str:
    if seconds != seconds:  # noqa: PLR0124 - not a number: there was none of the kind
        return ""
    return "without end" if seconds == float("inf") else f"{seconds:.1f}"


def chart(found: typing.Mapping[str, typing.Mapping[str, simulator.Outcome]]) -> plots.Bars:
    """The p99 of innocent mail to known hosts, up to a minute."""
    panels = []
    for scenario in scenarios.ALL:
        if scenario.is_hostile:
            bars = []
            for name, outcome in found[scenario.name].items():
                wait = outcome.percentile("proven", 0.99)
                bars.append(
                    plots.Bar(
                        label=name, value=min(wait, 60.0), text=_number(wait), is_ours=name == list(policies.ALL)[-1]
                    )
                )
            panels.append(plots.Panel(title=scenario.name, bars=tuple(bars)))
    return plots.Bars(
        title="Wait of innocent mail to known hosts, p99", unit="seconds; bars end at a minute", panels=tuple(panels)
    )


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.fairness", description=__doc__.splitlines()[0])
    words.add_argument("--output", type=pathlib.Path, default=HERE, help="where the table and the chart go")
    words.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
