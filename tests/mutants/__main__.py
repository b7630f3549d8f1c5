"""`make mutants`: put small faults into a sample of the modules, and count how many of them the tests notice.

    python -m tests.mutants --sample 150 --seed 1
    python -m tests.mutants --module model/delivery/retry.py --all

Each group of modules gets the same number of mutants, drawn from all that are possible in it. The same seed draws the
same ones as long as the modules stay the same. A mutant that survives is a missing test, dead code, or a change without
effect.
"""

import argparse
import importlib
import itertools
import random
import sys
from typing import Final

from tests.mutants import campaign, operators

GROUPS: Final = {
    "model": ("model",),
    "protocol": ("protocol",),
    "accepting": ("mail/accept",),
    "recording": ("mail/results", "delivery/recorder.py"),
    "webhooks": ("services/webhooks", "webhooks"),
}
# What many tests import and no mutant is in; the process of a mutant need not import it again.
PRELOADED: Final = ("apsw", "asyncpg", "cryptography.x509", "httpx", "msgspec", "structlog")


def main() -> int:
    """Draw, run, print the table."""
    given = _options()
    for name in PRELOADED:
        importlib.import_module(name)
    groups = {given.module: (given.module,)} if given.module else {name: GROUPS[name] for name in given.group or GROUPS}
    rows = [_row(name, paths, given) for name, paths in groups.items()]
    _print("\n".join(["| modules | possible | tried | killed | share |", "|---|---|---|---|---|", *rows]))
    return 0


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    options.add_argument("--sample", type=int, default=150, help="so many mutants of each group")
    options.add_argument("--all", action="store_true", help="every mutant")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--group", choices=GROUPS, action="append", help="this one alone")
    options.add_argument("--module", help="this module alone, as in model/delivery/retry.py")
    return options.parse_args()


def _row(name: str, paths: tuple[str, ...], given: argparse.Namespace) -> str:
    """Try the mutants of one group, and name those that survive."""
    files = [file for path in paths for file in sorted((campaign.SOURCE / path).rglob("*.py"))]
    files += [campaign.SOURCE / path for path in paths if path.endswith(".py")]
    possible = [(file, mutant) for file in files for mutant in operators.mutants(file.read_text())]
    count = len(possible) if given.all else min(given.sample, len(possible))
    chosen = [possible[place] for place in sorted(random.Random(given.seed).sample(range(len(possible)), count))]
    killed = 0
    for file, drawn in itertools.groupby(chosen, key=lambda each: each[0]):
        module, path = campaign.Module(file), file.relative_to(campaign.SOURCE)
        tried = [mutant for _, mutant in drawn]
        survivors = [mutant for mutant in tried if not module.notices(mutant.source)]
        killed += len(tried) - len(survivors)
        _print(f"{path}: {len(tried) - len(survivors)} of {len(tried)} killed")
        for mutant in survivors:
            _print(f"  survived: {path}:{mutant.line}: {mutant.change}")
    return f"| {name} | {len(possible):,} | {count} | {killed} | {killed / max(count, 1):.1%} |"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
