"""What all benchmarks do around their rounds: a folder on a real disk, the check of the goals, the result."""

import argparse
import contextlib
import pathlib
import tempfile
import typing

from benchmarks import failures, figures, goal_checks, machine, report
from benchmarks.peers import postgres

RESULTS = pathlib.Path(__file__).with_name("results")
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


def parser(
    name: str,
    description: str,
    *,
    peers: typing.Iterable[str],
    rounds: int = 3,
    results: pathlib.Path | None = RESULTS,
) -> argparse.ArgumentParser:
    """The options that every benchmark has; without `results` nothing is written unless somebody says where."""
    words = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=description)
    words.add_argument("--rounds", type=int, default=rounds, help=f"rounds of each peer, alternating ({rounds})")
    words.add_argument("--peers", nargs="+", choices=list(peers), default=list(peers), help="measure only these")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--results", type=pathlib.Path, default=results, help=f"where {name}.md and {name}.json go")
    return words


def add_mail_options(words: argparse.ArgumentParser) -> None:
    """Those of the benchmarks that hand in mail."""
    words.add_argument("--sessions", type=int, default=20, help="SMTP sessions at the same time (20)")
    words.add_argument("--content", choices=("ascii", "utf8"), default="ascii", help="what the messages say (ascii)")


def alternate(
    measure: typing.Callable[[str], figures.Round], names: typing.Sequence[str], *, rounds: int, gaps: list[str]
) -> list[tuple[str, figures.Round]]:
    """So many rounds of each, in turns, with its name; one that fails is a gap, and leaves the others their figures."""
    ended = []
    for number in range(1, rounds + 1):
        for name in names if number % 2 else reversed(names):  # what drifts concerns all
            with failures.into(gaps, what=f"round {number} of {name} did not end"):
                one = measure(name)
                ended.append((name, one))
                print(f"round {number}, {one.peer}: {one.messages_per_second:,.0f}/s", *one.problems, flush=True)
    return ended


@contextlib.contextmanager
def database(folder: pathlib.Path, facts: dict[str, str], *, wanted: bool) -> typing.Iterator[postgres.Postgres | None]:
    """The database server that lives through all rounds, if any needs one; what it is goes into the facts."""
    if not wanted:
        yield None
        return
    with postgres.running(folder / "postgresql") as server:
        durability = ", ".join(f"{name}={value}" for name, value in server.durability().items())
        facts["PostgreSQL"] = f"{server.version()} ({durability})"
        yield server


@contextlib.contextmanager
def work_folder(parent: pathlib.Path | None) -> typing.Iterator[pathlib.Path]:
    """A folder for the stores of a run, deleted at its end."""
    with tempfile.TemporaryDirectory(prefix="postroad-bench-", dir=parent) as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)  # the database server and Postfix work as other users
        yield folder


def in_memory(folder: pathlib.Path) -> list[str]:
    """The gap that a folder in memory leaves."""
    if (kind := machine.file_system(folder)) in MEMORY_FILE_SYSTEMS:
        return [f"the stores are in memory ({kind}), so nothing is durable: choose a disk with --folder"]
    return []


def doubt(summaries: typing.Sequence[figures.Summary]) -> str:
    """What a ratio between these is worth."""
    return f" ({goal_checks.DOUBT})" if goal_checks.is_noisy(summaries) else ""


def finish(result: report.Report, *, folder: pathlib.Path | None, name: str) -> int:
    """Print and, given a folder, write; 0 when all is well, 1 when a message was lost, 2 when something is missing."""
    print(report.terminal(result))
    if folder is not None:
        report.write(result, folder=folder, name=name)
    if any(summary.problems for summary in result.summaries):
        return 1
    return 2 if result.gaps else 0
