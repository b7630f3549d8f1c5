"""What all benchmarks do around their rounds: a folder on a real disk, the judgement of the ratios, the result."""

import contextlib
import pathlib
import tempfile
import typing

from benchmarks import figures, machine, report

RESULTS = pathlib.Path(__file__).with_name("results")
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


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


def verdicts(summaries: typing.Sequence[figures.Summary], *, reference: str, goal: float) -> list[str]:
    """A sentence for each peer beside the reference."""
    sentences = []
    for one in summaries:
        if one.peer != reference and one.ratio is not None:
            outcome = "reached" if one.ratio >= goal else "NOT reached"
            ratio = f"{one.ratio:.2f} times {reference}"
            sentences.append(f"{one.peer}: {ratio}; the goal of {goal:.0f} times is {outcome}{doubt(summaries)}.")
    return sentences


def doubt(summaries: typing.Sequence[figures.Summary]) -> str:
    """What a ratio between these is worth."""
    # Noise hurts a peer that fills all cores more than one that does not, so a ratio from a noisy run proves nothing.
    return " (in a noisy run: no proof)" if any(one.noisy_rounds for one in summaries) else ""


def finish(result: report.Report, *, folder: pathlib.Path | None, name: str) -> int:
    """Print and, given a folder, write; 0 when all is well, 1 when a message was lost, 2 when something is missing."""
    print(report.terminal(result))
    if folder is not None:
        report.write(result, folder=folder, name=name)
    if any(summary.problems for summary in result.summaries):
        return 1
    return 2 if result.gaps else 0
