"""`make fuzz`: look for inputs that break a reader, for so many minutes in all, and keep what reached something new.

    python -m tests.fuzz --minutes 5 --target address --seed 1

The exit code is 1 when anything was found. Each finding is in `crashes/`, as small as it could be made, with the line
that runs it again; fix it, and the next run of that line is green. No run is complete: another seed looks
elsewhere.
"""

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable

from tests.fuzz import campaign, corpus_files, target, targets, time_growth

REPLAY = "tests/fuzz/test_corpus.py::test_whatever_was_kept_is_read_as_its_target_says"

# The share of the time that goes to inputs which are long rather than odd.
STRETCHING = 0.2


def main() -> int:
    """Run, print, keep."""
    given = _options()
    chosen = [each for each in targets.ALL if given.target in (None, each.name)]
    seconds = given.minutes * 60 / len(chosen)
    _print(f"{len(chosen)} targets, {seconds:.0f} s each, seed {given.seed}")
    _print(f"{'target':<12} {'inputs':>8} {'new':>5} {'kept':>5} {'lines':>6} {'ways':>6} {'slowest':>9} {'found':>6}")
    return 1 if sum([_fuzz(each, given, seconds) for each in chosen]) else 0


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    options.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    options.add_argument("--target", choices=[each.name for each in targets.ALL], help="this one alone")
    options.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="a new one when not given")
    options.add_argument("--blind", action="store_true", help="learn nothing and keep nothing, for a comparison")
    return options.parse_args()


def _fuzz(chosen: target.Target, given: argparse.Namespace, seconds: float) -> int:
    with chosen.open() as work:
        words = corpus_files.words(chosen.name)
        run = campaign.Campaign(chosen, work, random.Random(given.seed), words, is_guided=not given.blind)
        end = time.monotonic() + seconds
        run.begin([] if given.blind else corpus_files.kept(chosen.name) + corpus_files.crashes(chosen.name))
        run.go_on(lambda: time.monotonic() > end - seconds * STRETCHING)
        if not given.blind:
            _stretch(run, until=lambda: time.monotonic() > end)
        tried, kept = run.tried, [] if given.blind else run.smallest()
    if not given.blind:
        corpus_files.keep(chosen.name, kept)
    counts = f"{tried:>8} {run.added:>5} {len(kept):>5} {run.lines:>6} {len(run.ways):>6}"
    _print(f"{chosen.name:<12} {counts} {run.slowest * 1000:>6.0f} ms {len(run.findings):>6}")
    for site, data in run.findings.items():
        file = corpus_files.keep_crash(chosen.name, data)
        _print(f"  {site}: {data[:100]!r} ({len(data)} octets, {file.relative_to(corpus_files.HERE.parent.parent)})")
        _print(f"  python -m pytest '{REPLAY}[{chosen.name}]'")
    return len(run.findings)


def _stretch(run: campaign.Campaign, *, until: Callable[[], bool]) -> None:
    found = time_growth.find(run.work, starts=run.inputs, words=run.words, chance=run.chance, until=until)
    for data in itertools.islice(found, 1):
        run.findings["twice the size takes three times as long"] = data


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - whoever waits for minutes wants to see something


if __name__ == "__main__":
    sys.exit(main())
