"""A failover in short: with a synchronous standby nothing that was acknowledged is lost, and the hosts find it."""

from pathlib import Path

import pytest

from tests.chaos import failovers, report, trial
from tests.postgres_pair import Pair


async def test_nothing_is_lost_when_the_primary_dies_and_the_standby_is_promoted(tmp_path: Path) -> None:
    with Pair() as pair:
        servers = failovers.Failovers(pair)
        plan = trial.Plan(
            layout="three processes",
            seed=1,
            kills=0,
            http_senders=2,
            smtp_senders=2,
            pause_seconds=0.05,
            hurries=True,
            disturbances=[servers.fail_over],
            servers=servers,
        )
        outcome = await trial.run(plan, tmp_path, pair.create_database())
    broken = [check.name for check in outcome.checked if check.findings]
    assert not broken, "\n".join([*broken, *outcome.traces])
    assert outcome.disturbed == {"failovers": 1}
    assert [one.seconds >= one.promotion_seconds > 0 for one in outcome.outages] == [True]
    assert "| failover | time to promotion, s |" in "\n".join(report.section("short", outcome))


def test_an_outage_lasts_from_the_last_accept_before_the_kill_to_the_next_after_the_promotion() -> None:
    accepted_at = [9.0, 9.5, 10.1, 14.0, 15.0, 19.0, 21.5]
    assert failovers.outages([(10.0, 12.0), (20.0, 21.0)], accepted_at) == [
        failovers.Outage(2.0, 4.5),
        failovers.Outage(1.0, 2.5),
    ]


def test_a_failover_after_which_nothing_is_accepted_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="empty"):
        failovers.outages([(10.0, 12.0)], [9.0])
