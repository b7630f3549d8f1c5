"""The crash matrix in short: everything at once, in real processes that are killed, and nothing is lost.

They die at six boundaries and twice at any moment; `make chaos` goes through all boundaries, for minutes.
"""

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import boundaries, databases, networks, report, trial
from tests.chaos.boundaries import Moment
from tests.postgres_server import PostgresServer

AT_BOUNDARIES = [
    boundaries.Order("accept", Moment.AFTER),
    boundaries.Order("claim", Moment.AFTER),
    boundaries.Order("record", Moment.BEFORE),
    boundaries.Order("settle", Moment.DURING, 0.001),
    boundaries.Order("webhook claim", Moment.AFTER),
    boundaries.Order("webhook record", Moment.INSIDE),
]
ORDERS = [*AT_BOUNDARIES[:3], None, *AT_BOUNDARIES[3:], None]


def short(layout: str, **changes: object) -> trial.Plan:
    # Few senders: what they have sent must be delivered before the test is over.
    return trial.Plan(
        layout=layout,
        seed=1,
        kills=len(ORDERS),
        orders=ORDERS,
        http_senders=2,
        smtp_senders=2,
        pause_seconds=0.1,
        hurries=True,
        **changes,  # type: ignore[arg-type] # by name, as the plan has them
    )


def prove(outcome: trial.Outcome) -> None:
    broken = [check.name for check in outcome.checked if check.findings]
    assert not broken, "\n".join([*broken, *outcome.traces])
    at_any_moment = outcome.kills[boundaries.ANY_MOMENT, ""] + outcome.kills[boundaries.A_FRONTEND, ""]
    assert at_any_moment == len(ORDERS) - len(AT_BOUNDARIES)
    assert outcome.kills >= Counter((order.kind, order.moment) for order in AT_BOUNDARIES)
    assert outcome.kills.total() == len(ORDERS)
    listeners = {submission.listener for submission in outcome.snapshot.submissions if submission.is_acknowledged}
    assert listeners == {"http", "smtp"}
    assert outcome.snapshot.received
    assert "findings" in "\n".join(report.section("short", outcome))


async def test_nothing_is_lost_when_the_only_process_is_killed(clean_sqlite_url: str, tmp_path: Path) -> None:
    prove(await trial.run(short("one process"), tmp_path, clean_sqlite_url))


async def test_nothing_is_lost_when_processes_are_killed_and_connections_cut(
    postgres_server: PostgresServer, clean_postgres_url: str, tmp_path: Path
) -> None:
    async with networks.between(clean_postgres_url, random.Random(1)) as (between, url):
        cut = databases.cutting(postgres_server, clean_postgres_url)
        disturbances = [between.reset_some, cut, between.lose_commits]
        plan = short("three processes", disturbances=disturbances, network=between)
        outcome = await trial.run(plan, tmp_path, url)
    prove(outcome)
    assert set(between.lost) == set(networks.Loss)
    # With this seed the first connection is among those that are reset; the server decides by a chance of its own.
    assert outcome.disturbed["connections reset"] > 0
    assert "connections ended by the server" in outcome.disturbed


@pytest.mark.parametrize("layout", trial.LAYOUTS)
def test_every_kind_of_transaction_has_a_process_that_runs_it(layout: str) -> None:
    roles = {role for those in trial.LAYOUTS[layout].values() for role in those}
    assert {kind.role for kind in boundaries.KINDS.values()} <= roles
