"""`make chaos`: the crash matrix at length, on both engines; prints its tables and writes RESULTS.md.

    python -m tests.chaos --engine sqlite --kills 200 --seed 1

A run of one engine writes build/chaos/RESULTS.md instead, so that it does not replace the others.

The exit code is 1 when anything was found; then the stores and the logs are left, and the last line says where.
"""

import argparse
import asyncio
import logging
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.chaos import databases, report, trial

RESULTS: Final = Path(__file__).with_name("RESULTS.md")
BUILD: Final = Path(__file__).parents[2] / "build" / "chaos" / "RESULTS.md"
LAYOUTS: Final = {
    "sqlite": ("one process", "two processes"),
    "postgres": ("three hosts",),
    "failover": ("three hosts",),
}
NAMES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL", "failover": "PostgreSQL with failovers"}


def main() -> int:
    """Run, print, write."""
    given = _options()
    # A connection pool beside the service's: it is meant to lose its connections.
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="postroad-chaos-"))
    outcomes: dict[str, trial.Outcome] = {}
    for engine in list(LAYOUTS) if given.engine == "all" else [given.engine]:
        for layout in LAYOUTS[engine]:
            name = f"{NAMES[engine]}, {layout}"
            place = folder / name.replace(", ", "-").replace(" ", "-")
            place.mkdir()
            outcomes[name] = asyncio.run(_try(given, engine, layout, place))
            _print("\n".join(report.section(name, outcomes[name])))
    results = RESULTS if given.engine == "all" else BUILD
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(report.write(outcomes))
    if any(check.findings for outcome in outcomes.values() for check in outcome.checked):
        _print(f"there are findings; the stores and the logs are in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    options.add_argument("--engine", choices=[*LAYOUTS, "all"], default="all")
    options.add_argument("--kills", type=int, default=200, help="for each engine")
    options.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="a new one when not given")
    options.add_argument(
        "--minutes", type=float, default=30.0, help="for each engine; kills that do not fit are left out"
    )
    return options.parse_args()


async def _try(given: argparse.Namespace, engine: str, layout: str, folder: Path) -> trial.Outcome:
    share = len(LAYOUTS[engine])
    async with databases.opened(engine, folder, random.Random(given.seed)) as database:
        plan = trial.Plan(
            layout=layout,
            seed=given.seed,
            kills=-(-given.kills // share),
            minutes=given.minutes / share,
            disturbances=database.disturbances,
            network=database.network,
            servers=database.servers,
            tell=lambda text: _print(f"{NAMES[engine]}, {layout}: {text}"),
        )
        return await trial.run(plan, folder, database.url)


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - whoever waits for minutes wants to see something


if __name__ == "__main__":
    sys.exit(main())
