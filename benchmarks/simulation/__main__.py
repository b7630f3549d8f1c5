"""Simulate days of delivery: `make simulate`, or `python -m benchmarks.simulation --help`.

Runs days of scenarios.toml with the real scheduler in virtual time, checks the invariants at every step, stores what
was seen as JSON, and writes RESULTS.md with its charts for all days that are stored. A day is repeated exactly by its
seed.
"""

import argparse
import pathlib
import resource
import sys
import time
import typing

import msgspec

from benchmarks import machine, plots
from benchmarks.simulation import day, outcome, results_page, scenario

HERE = pathlib.Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "simulation"
MESSAGES = 100_000
# Compares numbers of hosts in a shorter day with the rates of a large one.
HOSTS, HOST_COUNTS, HOST_MESSAGES, HOST_PART = "hosts", (1, 2, 3, 4, 8, 16, 32), 10_000_000, 0.005


def main() -> int:
    """Simulate, and write the results; 1 when an invariant was violated."""
    found = scenario.load()
    options = _options([*found, HOSTS])
    options.output.mkdir(parents=True, exist_ok=True)
    is_right = True
    for name in () if options.page_only else options.scenarios or [*found, HOSTS]:
        for one in _shorter(found["ordinary"], options) if name == HOSTS else [_scaled(found[name], options)]:
            run = _run(one, seed=options.seed)
            (options.output / f"{one.name}.json").write_bytes(msgspec.json.encode(run))
            is_right = is_right and not run.outcome.violations
    _write_page(options.output, [*found])
    return int(not is_right)


def _run(one: scenario.Scenario, *, seed: int) -> outcome.Run:
    began = time.process_time()
    seen = day.run(one, seed=seed)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{one.name}, {one.hosts} hosts: {seen.accepted:,} messages in {seconds:,.0f} s of CPU "
        f"({seconds / max(1, seen.accepted) * 1e6:,.0f} µs each), {memory:,} MiB"
    )
    for violation in seen.violations:
        print(f"  VIOLATED, seed {seed}: {violation}")
    sys.stdout.flush()
    facts = {name: value for name, value in machine.facts().items() if name in {"processor", "Python"}}
    return outcome.Run(outcome=seen, cpu_seconds=seconds, mebibytes=memory, facts=facts)


def _scaled(one: scenario.Scenario, options: argparse.Namespace) -> scenario.Scenario:
    hosts = max([options.hosts[0] if options.hosts else one.hosts, *(crash.host + 1 for crash in one.crashes)])
    return msgspec.structs.replace(one, messages=options.messages or MESSAGES, hosts=hosts)


def _shorter(one: scenario.Scenario, options: argparse.Namespace) -> typing.Iterator[scenario.Scenario]:
    """A part of a day with the rates of the whole, on several numbers of hosts."""
    seconds = one.seconds * options.part
    shorter = msgspec.structs.replace(
        one,
        messages=round((options.messages or HOST_MESSAGES) * options.part),
        seconds=seconds,
        drain_seconds=seconds / 2,
    )
    for hosts in options.hosts or HOST_COUNTS:
        yield msgspec.structs.replace(shorter, name=f"{HOSTS}-{hosts}", hosts=hosts)


def _write_page(folder: pathlib.Path, names: typing.Sequence[str]) -> None:
    stored = {path.stem: msgspec.json.decode(path.read_bytes(), type=outcome.Run) for path in folder.glob("*.json")}
    days = {name: stored[name] for name in names if name in stored}
    by_hosts = [run for name, run in stored.items() if name.startswith(f"{HOSTS}-")]
    by_hosts.sort(key=lambda run: run.outcome.day.hosts)
    for name, chart in results_page.charts(days, by_hosts).items():
        (folder / f"{name}.svg").write_text(plots.svg(chart))
    (folder / "RESULTS.md").write_text(results_page.page(days, by_hosts))


def _options(names: list[str]) -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__.splitlines()[0])
    words.add_argument(
        "scenarios", nargs="*", help=f"which to run: {', '.join(names)} (default: all); {HOSTS!r} compares 1 to 32"
    )
    words.add_argument(
        "--messages",
        type=int,
        help=f"messages of a day (default: {MESSAGES:,}; of {HOSTS!r}, {HOST_MESSAGES:,} times the part)",
    )
    words.add_argument("--hosts", type=int, nargs="+", default=[], help="number of hosts, instead of the scenario's")
    words.add_argument(
        "--part", type=float, default=HOST_PART, help=f"length of the days of {HOSTS!r} (default: {HOST_PART} days)"
    )
    words.add_argument("--seed", type=int, default=1, help="seed of the random numbers (default: 1)")
    words.add_argument("--output", type=pathlib.Path, default=BUILD, help="folder of the days, the page and the charts")
    words.add_argument("--page-only", action="store_true", help="run nothing: write the page of the days in the folder")
    options = words.parse_args()
    if unknown := set(options.scenarios) - set(names):
        words.error(f"no such scenario: {', '.join(sorted(unknown))}")
    if len(options.hosts) > 1 and options.scenarios != [HOSTS]:
        words.error(f"several numbers of hosts are for {HOSTS!r} alone")
    return options


if __name__ == "__main__":
    raise SystemExit(main())
