"""`make bench`: run the benchmarks one after the other, each as a process of its own, and write RESULTS.md.

    python -m benchmarks [--quick] [--report] [names …]

One that fails does not stop the others; the end says which did not go well. A quick run proves that everything works,
not how fast it is, so its results go to `build/benchmarks` and replace nothing.
"""

import argparse
import pathlib
import signal
import subprocess
import sys
import time
import typing

from benchmarks import chapters, results_page

HERE = pathlib.Path(__file__).parent
QUICK_RESULTS = HERE.parent / "build" / "benchmarks"
# Twice what the longest takes on a slow machine; one that hangs must not take the night.
MAX_SECONDS = 3600.0
# Servers have 20 s each to stop, and a store of a million messages is not deleted at once.
GRACE_SECONDS = 120.0
# What the process of a benchmark says by its exit code.
ENDS = {
    0: "all is well",
    1: "a message was refused, lost, doubled or late",
    2: "something is missing",
}


def main() -> int:
    """Run, write, say how it went; 0 when all is well, otherwise the worst that a benchmark said."""
    options = _options()
    folder: pathlib.Path = options.output or (QUICK_RESULTS if options.quick else HERE)
    ends = {}
    if not options.report:
        wanted = [chapter for chapter in chapters.ALL if chapter.name in options.names]
        for number, chapter in enumerate(wanted, 1):
            print(f"=== {chapter.name} ({number} of {len(wanted)})", flush=True)
            ends[chapter.name] = _run(command(chapter, folder=folder, options=options))
    print(f"{results_page.write(folder)} is written.")
    for name, (code, seconds) in ends.items():
        print(f"{name}: {ENDS.get(code, f'failed with {code}')} ({seconds:.0f} s)")
    return worst(code for code, _ in ends.values())


def command(chapter: chapters.Chapter, *, folder: pathlib.Path, options: argparse.Namespace) -> list[str]:
    """What starts a benchmark."""
    words = [sys.executable, "-m", f"benchmarks.{chapter.name}", "--results", str(folder / "results")]
    words += ["--folder", str(options.folder)] if options.folder else []
    words += chapter.quick if options.quick else chapter.whole
    return words


def worst(codes: typing.Iterable[int]) -> int:
    """One exit code for all: a crash before a lost message before a gap."""
    severity = {0: 0, 2: 1, 1: 2}
    return max(codes, key=lambda code: severity.get(code, 3), default=0)


def _run(words: typing.Sequence[str]) -> tuple[int, float]:
    began = time.monotonic()
    with subprocess.Popen(words, cwd=HERE.parent) as program:
        try:
            program.wait(MAX_SECONDS)
        except subprocess.TimeoutExpired:
            _end(program)
    return program.returncode, time.monotonic() - began


def _end(program: subprocess.Popen[bytes]) -> None:
    """As an operator would end it, so that it stops its servers and deletes their stores; then by force."""
    program.send_signal(signal.SIGINT)
    try:
        program.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="python -m benchmarks", description="All benchmarks, and RESULTS.md.")
    names = [chapter.name for chapter in chapters.ALL]
    words.add_argument("names", nargs="*", metavar="name", help=f"only these: {', '.join(names)}")
    words.add_argument("--quick", action="store_true", help="a few minutes, to see that everything works")
    words.add_argument("--report", action="store_true", help="measure nothing, only write RESULTS.md")
    words.add_argument("--folder", type=pathlib.Path, help="a folder on the disk to measure (the temporary one)")
    words.add_argument("--output", type=pathlib.Path, help="where RESULTS.md, results and plots go")
    options = words.parse_args()
    if unknown := sorted(set(options.names) - set(names)):
        words.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    options.names = options.names or names
    return options


if __name__ == "__main__":
    raise SystemExit(main())
