"""TLS reports add results up within bounds, and one host claims each; MTA-STS policies live until they expire."""

from typing import Any

import pytest

from postroad.protocol.reports import tls_report
from postroad.storage.engine.store import Store, Transaction
from postroad.storage.mail import tls_policies
from tests.storage import samples
from tests.storage.conftest import Reopen

DAY = 20_000
POLICY = tls_report.Policy(tls_report.PolicyType.NONE, "example.org")
SUCCESS = tls_report.Result(POLICY)


def failure(number: int = 0) -> tls_report.Result:
    kind = tls_report.FailureType.STARTTLS_NOT_SUPPORTED
    return tls_report.Result(POLICY, kind, "192.0.2.9", f"mx{number}.example.org", "192.0.2.1")


async def add(store: Store, *, day: int = DAY, due_at: int = 100, **sessions: dict[tls_report.Result, int]) -> None:
    named = {f"{name}.example": results for name, results in sessions.items()}
    async with store.transaction() as tx:
        await tls_policies.add_sessions(tx, day, named, due_at=dict.fromkeys(named, due_at))


async def claim(store: Store, *, now: int = 100, until: int = 200, limit: int = 10) -> list[tls_policies.DueReport]:
    async with store.transaction() as tx:
        return sorted(
            await tls_policies.claim_due_report(tx, now=now, until=until, limit=limit), key=lambda one: one.domain
        )


async def sessions(store: Store, report: tls_policies.DueReport) -> dict[tls_report.Result, int]:
    async with store.reading() as tx:
        return await tls_policies.sessions(tx, report)


async def test_results_are_added_up_by_day_and_domain(store: Store) -> None:
    await add(store, one={SUCCESS: 3, failure(): 1}, two={SUCCESS: 1})
    await add(store, one={SUCCESS: 4}, due_at=999)
    await add(store, day=DAY + 1, one={SUCCESS: 9}, due_at=999)
    one, two = await claim(store)
    assert one == tls_policies.DueReport(DAY, "one.example", 200, 1, "")
    assert await sessions(store, one) == {SUCCESS: 7, failure(): 1}
    assert await sessions(store, two) == {SUCCESS: 1}


async def test_a_claimed_report_belongs_to_one_host_until_its_claim_expires(store: Store, reopen: Reopen) -> None:
    other = await reopen()
    await add(store, one={SUCCESS: 1})
    assert await claim(store, now=99) == []
    (first,) = await claim(store)
    assert await claim(other) == []
    assert await claim(other, now=199) == []
    (again,) = await claim(other, now=200, until=300)
    assert (first.attempt_count, again.attempt_count) == (1, 2)


async def test_a_report_that_is_being_sent_gets_no_more_results(store: Store) -> None:
    await add(store, one={SUCCESS: 1})
    (report,) = await claim(store)
    await add(store, one={SUCCESS: 1, failure(): 1})
    assert await sessions(store, report) == {SUCCESS: 1}


async def test_a_postponed_report_remembers_who_has_got_it(store: Store) -> None:
    await add(store, one={SUCCESS: 1})
    (report,) = await claim(store)
    async with store.transaction() as tx:
        await tls_policies.postpone_report(
            tx, report, due_at=500, done=["mailto:a@example.org", "https://example.org/"]
        )
    assert await claim(store, now=499) == []
    (again,) = await claim(store, now=500, until=600)
    assert again.sent.split("\n") == ["mailto:a@example.org", "https://example.org/"]
    async with store.transaction() as tx:
        await tls_policies.remove_report(tx, again)
    assert await claim(store, now=10_000) == []
    assert await sessions(store, again) == {}


async def test_a_domain_with_ever_new_results_has_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_policies, "MAX_RESULTS", 3)
    for number in range(6):
        await add(store, one={failure(number): 1})
    await add(store, one={failure(0): 5, failure(5): 5})
    (report,) = await claim(store)
    assert await sessions(store, report) == {failure(0): 6, failure(1): 1, failure(2): 1}


async def test_a_tenant_with_ever_new_domains_has_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_policies, "MAX_REPORTS_PER_DAY", 2)
    for number in range(5):
        named: dict[str, Any] = {f"domain{number}": {SUCCESS: 1}}
        await add(store, **named)
    await add(store, domain0={SUCCESS: 1})
    await add(store, day=DAY + 1, other={SUCCESS: 1})
    claimed = await claim(store)
    assert [report.domain for report in claimed] == ["domain0.example", "domain1.example", "other.example"]
    assert await sessions(store, claimed[0]) == {SUCCESS: 2}
    assert await samples.count(store, "tls_results") == 3


async def test_the_names_below_one_zone_leave_reports_for_others(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_policies, "MAX_REPORTS_PER_DAY", 20)
    monkeypatch.setattr(tls_policies, "MIN_REPORTS_PER_ZONE", 2)
    names: dict[str, Any]
    for batch in range(5):
        names = {f"w{batch}{number}.a.hostile": {SUCCESS: 1} for number in range(8)}
        await add(store, **names)
    for zone in range(4):
        names = {f"w{number}.zone{zone}": {SUCCESS: 1} for number in range(40)}
        await add(store, **names)
    found = [report.domain for report in await claim(store, limit=100)]
    zones = [sum(name.endswith(f"{zone}.example") for name in found) for zone in ("hostile", *map(str, range(4)))]
    assert zones == [10, 5, 3, 2, 0]


async def test_old_reports_are_swept_with_their_results(store: Store) -> None:
    await add(store, one={SUCCESS: 1, failure(): 1})
    await add(store, day=DAY + 1, one={SUCCESS: 1})
    async with store.transaction() as tx:
        assert await tls_policies.sweep_reports(tx, until_day=DAY - 1) == 0
        assert await tls_policies.sweep_reports(tx, until_day=DAY) == 3
    assert [report.day for report in await claim(store)] == [DAY + 1]


NOW = 1_800_000_000_000_000


async def test_what_has_expired_or_is_too_much_is_swept(tx: Transaction) -> None:
    for number in range(6):
        row = tls_policies.StoredPolicy(f"{number}.example", "1", "text", NOW + number, NOW + 100)
        await tls_policies.put_policy(tx, row)
    await tls_policies.put_policy(tx, tls_policies.StoredPolicy("old.example", "1", "text", NOW, NOW + 10))
    assert await tls_policies.sweep_policies(tx, now=NOW + 9, most=7) == 0
    assert await tls_policies.sweep_policies(tx, now=NOW + 10, most=7) == 1
    assert await tls_policies.sweep_policies(tx, now=NOW + 10, most=4) == 2
    left = [await tls_policies.find_policy(tx, f"{number}.example", now=NOW + 99) for number in range(6)]
    assert [row is not None for row in left] == [False, False, True, True, True, True]
    assert await tls_policies.find_policy(tx, "5.example", now=NOW + 100) is None


async def test_a_policy_that_was_fetched_earlier_does_not_replace_a_later_one(tx: Transaction) -> None:
    later = tls_policies.StoredPolicy("example.org", "2", "later", NOW + 1, NOW + 100)
    await tls_policies.put_policy(tx, later)
    await tls_policies.put_policy(tx, tls_policies.StoredPolicy("example.org", "1", "earlier", NOW, NOW + 100))
    assert await tls_policies.find_policy(tx, "example.org", now=NOW) == later
