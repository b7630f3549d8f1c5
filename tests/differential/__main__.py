"""Send generated requests to this checkout and to another one, and print where they answer differently.

    git worktree add ../before f00dcafe        # with a virtual environment of its own in .venv, or none
    python -m tests.differential ../before --requests 4000

The exit code is 1 when anything differed. A seed makes the same requests again; another one looks elsewhere.
"""

import argparse
import collections
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.differential import comparison, exchange, generator, services

HERE: Final = Path(__file__).resolve().parents[2]
# Enough to see what it is about; the rest of a page or a long message repeats it.
SHOWN_OCTETS: Final = 1500


def main() -> int:
    """Run, and print what differed."""
    options = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    options.add_argument("other", type=Path, help="the other checkout")
    options.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="a new one when not given")
    options.add_argument("--requests", type=int, default=2000)
    options.add_argument("--frontends", type=int, default=1, help="processes that take mail; 1: the service itself")
    given = options.parse_args()
    print(f"seed {given.seed}")  # noqa: T201 - for whoever repeats it
    differences = run(HERE, given.other.resolve(), seed=given.seed, requests=given.requests, frontends=given.frontends)
    return 1 if differences else 0


def run(here: Path, other: Path, *, seed: int, requests: int, frontends: int = 1) -> int:
    """How many conversations differed; each is printed, with both responses, and a summary."""
    began, counts, differences = time.monotonic(), collections.Counter[str](), 0
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        both = services.start_both(stack, folder, (here, other), frontends=frontends)
        pairs = [(exchange.Client(service), comparison.Normaliser(service)) for service in both]
        for number, conversation in enumerate(generator.conversations(random.Random(seed), requests)):
            # One at a time, so that what a request leaves behind is there for the next one on both sides.
            responses = [
                normaliser.normalise(client.hold(number, conversation), number) for client, normaliser in pairs
            ]
            counts.update(exchange.outcomes(responses[0]))
            if responses[0] != responses[1]:
                differences += 1
                _print(number, conversation, responses)
        for client, _ in pairs:
            client.close()
    seconds = time.monotonic() - began
    print(f"{requests} conversations in {seconds:.0f} s, {differences} different")  # noqa: T201
    print("  ".join(f"{outcome}: {count}" for outcome, count in sorted(counts.items())))  # noqa: T201
    return differences


def _print(number: int, conversation: generator.Conversation, responses: list[bytes]) -> None:
    print(f"== {number}: {conversation.label}")  # noqa: T201
    for title, content in zip(
        ("request", "this checkout", "the other"), (b"".join(conversation.segments), *responses), strict=True
    ):
        print(f"-- {title}\n{content[:SHOWN_OCTETS].decode('utf-8', 'backslashreplace')}")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
