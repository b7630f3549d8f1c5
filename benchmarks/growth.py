"""`make bench-growth`: how the cost of a message grows with what the installation has.

Recipients of a message, accounts, destinations, stored messages, and delivery processes on one PostgreSQL: for each
size the CPU time of a message, the peak memory of the service and the slowest query (`growth_ranges.py`). What is asked
for is that the dearest size of a range costs at most a fifth more than the smallest one. CPU time is what counts,
because it changes least on a busy machine. A size that the disk does not allow is reported as not measured.
"""

import argparse
import json
import pathlib
import shutil
import sys
import typing

from benchmarks import failures, growth_ranges, growth_tables, machine, report, session
from benchmarks.peers import smtp_sink, stores

PEERS: dict[str, stores.Name] = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
GIGABYTE = 10**9
# What a stored message takes with everything that belongs to it, and the temporary tables from which it is filled.
STORED_BYTES = {"SQLite": 3400, "PostgreSQL": 4200}


def main() -> int:
    """Measure, print, write; 0 when all is well, 1 when a message is lost or doubled, 2 when something is missing."""
    options = _options()
    reason = smtp_sink.missing() or (None if shutil.which("wrk") else "wrk is not installed: apt-get install wrk")
    if reason:
        print(f"!!! INCOMPLETE: nothing was measured. {reason}", file=sys.stderr)
        return 2
    gaps: list[str] = []
    figures = _read(options.results / "growth.json") if options.add else []
    in_doubt = False
    with session.work_folder(options.folder) as folder:
        facts = machine.facts() | {"file system": machine.file_system(folder)}
        gaps += session.in_memory(folder)
        with session.database(folder, facts, wanted="postgresql" in options.peers) as server:
            bench = growth_ranges.Bench(options=options, folder=folder, database=server)
            for name in options.ranges:
                for store in (PEERS[peer] for peer in options.peers):
                    for size in growth_tables.RANGES[name].sizes_on(store, getattr(options, name)):
                        what = f"{size:,} {growth_tables.RANGES[name].title} on {store}"
                        if name == "stored" and (reason := _too_large(store, size, folder, options)):
                            gaps.append(f"{what}: {reason}")
                            continue
                        in_doubt = in_doubt or machine.is_busy()
                        with failures.into(gaps, what=f"{what} did not end"):
                            one = getattr(bench, name)(store, size)
                            figures = [old for old in figures if not _is_same(old, one)] + [one]
                            print(what, *growth_tables.table([one])[1][2:], *one.problems, flush=True)
                            _write(options, facts=facts, figures=figures, gaps=gaps, in_doubt=in_doubt)
    print(_write(options, facts=facts, figures=figures, gaps=gaps, in_doubt=in_doubt))
    return 1 if any(figure.problems for figure in figures) else 2 if gaps else 0


def _is_same(one: growth_tables.Figure, other: growth_tables.Figure) -> bool:
    return (one.range, one.store, one.size) == (other.range, other.store, other.size)


def _read(path: pathlib.Path) -> list[growth_tables.Figure]:
    """The figures of an earlier run, if there was one."""
    if not path.exists():
        return []
    return [growth_tables.Figure(**load) for load in json.loads(path.read_text())["figures"]]


def _too_large(store: stores.Name, size: int, folder: pathlib.Path, options: argparse.Namespace) -> str | None:
    """Why the disk does not allow a store of this size."""
    needed = size * STORED_BYTES[store] / GIGABYTE
    allowed = min(options.gigabytes, shutil.disk_usage(folder).free / GIGABYTE)
    if needed <= allowed:
        return None
    return f"not measured, because it needs about {needed:,.0f} GB and {allowed:,.0f} GB are allowed"


def _write(
    options: argparse.Namespace,
    *,
    facts: dict[str, str],
    figures: typing.Sequence[growth_tables.Figure],
    gaps: typing.Sequence[str],
    in_doubt: bool,
) -> str:
    """The page; written after each size, because a full run takes hours."""
    conditions = (
        f"Microseconds of CPU of a message of 5 KB to one recipient, of the service and of PostgreSQL: medians of "
        f"{options.windows} windows of {options.messages:,} mail transactions or more, after one to warm up. Over HTTP "
        f"with {options.connections} persistent connections and unsigned to smtp-sink, in one process with api, "
        "delivery and maintenance; destinations from a backlog in the store, by DNS, in one window, "
        f"with {growth_ranges.MAILS_EACH} messages for each or more. Memory is the peak of the "
        "service's processes. The slowest query is the one with the longest median, in milliseconds that its "
        "transaction waits."
    )
    checked = growth_tables.goals(figures, in_doubt=in_doubt)
    lines = [
        "# How cost grows\n",
        conditions + "\n",
        *report.markdown_table(growth_tables.table(figures)),
        "",
        *(f"- {goal.sentence()}" for goal in checked),
        *(f"- PROBLEM, {figure.size:,} {figure.range}: {problem}" for figure in figures for problem in figure.problems),
        *(f"- INCOMPLETE: {gap}" for gap in gaps),
        "",
        *report.markdown_table([("fact", "value"), *facts.items()]),
        "",
    ]
    options.results.mkdir(parents=True, exist_ok=True)
    result = growth_tables.reported(figures, facts=facts, conditions=conditions, gaps=gaps, in_doubt=in_doubt)
    (options.results / "growth.md").write_text("\n".join(lines))
    (options.results / "growth.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="How cost grows.")
    words.add_argument(
        "--ranges",
        nargs="+",
        choices=list(growth_tables.RANGES),
        default=list(growth_tables.RANGES),
        help="measure only these",
    )
    words.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), help="on these stores only")
    for name, one in growth_tables.RANGES.items():
        words.add_argument(f"--{name}", type=int, nargs="+", default=list(one.sizes), help=f"{one.title}")
    words.add_argument("--messages", type=int, default=5000, help="mail transactions of a window, or more (5000)")
    words.add_argument("--windows", type=int, default=3, help="measured windows of each size (3)")
    words.add_argument("--connections", type=int, default=64, help="persistent HTTP connections (64)")
    words.add_argument("--gigabytes", type=float, default=300, help="space that a store may take (300)")
    words.add_argument("--add", action="store_true", help="keep the figures of earlier runs for other sizes")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, default=session.RESULTS, help="where growth.md and .json go")
    return words.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
