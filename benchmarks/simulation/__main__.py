"""Simulate days of delivery: `make simulate`, or `python -m benchmarks.simulation --help`.

Runs days of scenarios.toml with the real scheduler in virtual time, checks the invariants at every step, and writes
RESULTS.md with its charts. A day is repeated exactly by its seed.
"""

import argparse
import pathlib
import resource
import sys
import time

import msgspec

from benchmarks import machine, plots
from benchmarks.simulation import day, results_page, scenario

HERE = pathlib.Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "simulation"
MESSAGES = 1_000_000
# Compares numbers of hosts, for some minutes of the busiest hour.
HOSTS, HOST_COUNTS = "hosts", (1, 2, 4, 8, 16, 32)


def main() -> int:
    """Simulate, and write the results; 1 when an invariant was violated."""
    found = scenario.load()
    options = _options([*found, HOSTS])
    options.output.mkdir(parents=True, exist_ok=True)
    chosen = options.scenarios or [*found, HOSTS]
    outcomes = {name: _run(_scaled(found[name], options), options) for name in chosen if name != HOSTS}
    by_hosts = []
    if HOSTS in chosen:
        noon = _at_noon(found["ordinary"], options)
        counts = options.hosts or HOST_COUNTS
        by_hosts = [_run(msgspec.structs.replace(noon, hosts=hosts), options) for hosts in counts]
        (options.output / "hosts.svg").write_text(plots.svg(results_page.hosts_chart(by_hosts)))
    for name, outcome in outcomes.items():
        (options.output / f"{name}.svg").write_text(plots.svg(results_page.chart(name, outcome)))
    facts = {name: value for name, value in machine.facts().items() if name in {"processor", "Python", "commit"}}
    words = " ".join(sys.argv[1:])
    page = results_page.page(
        outcomes, by_hosts, command=f"python -m benchmarks.simulation {words}".strip(), facts=facts
    )
    (options.output / "RESULTS.md").write_text(page)
    return int(any(one.violations for one in (*outcomes.values(), *by_hosts)))


def _run(one: scenario.Scenario, options: argparse.Namespace) -> day.Outcome:
    began = time.process_time()
    outcome = day.run(one, seed=options.seed)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{one.name}, {one.hosts} hosts: {outcome.accepted:,} messages in {seconds:,.0f} s of CPU "
        f"({seconds / max(1, outcome.accepted) * 1e6:,.0f} µs each), {memory:,} MiB"
    )
    for violation in outcome.violations:
        print(f"  VIOLATED, seed {options.seed}: {violation}")
    return outcome


def _scaled(one: scenario.Scenario, options: argparse.Namespace) -> scenario.Scenario:
    hosts = max([*options.hosts[:1], *([] if options.hosts else [one.hosts]), *(c.host + 1 for c in one.crashes)])
    return msgspec.structs.replace(one, messages=options.messages, hosts=hosts)


def _at_noon(one: scenario.Scenario, options: argparse.Namespace) -> scenario.Scenario:
    """Some minutes at the rate of the busiest hour of a day with so many messages."""
    seconds = 60.0 * options.minutes
    messages = round(options.messages * one.busy * seconds / one.seconds)
    return msgspec.structs.replace(one, messages=messages, seconds=seconds, drain_seconds=seconds, busy=1.0)


def _options(names: list[str]) -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__.splitlines()[0])
    words.add_argument(
        "scenarios", nargs="*", help=f"which to run: {', '.join(names)} (default: all); {HOSTS!r} compares 1 to 32"
    )
    words.add_argument("--messages", type=int, default=MESSAGES, help=f"messages of a day (default: {MESSAGES:,})")
    words.add_argument("--hosts", type=int, nargs="+", default=[], help="number of hosts, instead of the scenario's")
    words.add_argument(
        "--minutes", type=float, default=10.0, help=f"minutes of the busiest hour, for {HOSTS!r} (default: 10)"
    )
    words.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    words.add_argument("--output", type=pathlib.Path, default=BUILD, help="folder of the page and the charts")
    options = words.parse_args()
    if unknown := set(options.scenarios) - set(names):
        words.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
