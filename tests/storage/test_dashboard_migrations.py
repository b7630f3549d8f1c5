"""Migrations for pages of the dashboard, from a store of the version before."""

import pytest

from postroad.storage import failure_counts, migrations, users
from postroad.storage.store import Store
from tests.storage.conftest import Reopen


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


@pytest.fixture
async def empty(reopen: Reopen) -> Store:
    return await reopen()


async def test_users_from_before_time_zones_have_none(empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations.known
    before = [one.name for one in known(empty.dialect)].index("time_zones")
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:before])
    await migrations.apply(empty)
    user = users.User("usr_1", "acc_1", "jo@example.com", "hash", "owner", 1, None, 1, 1)
    async with empty.transaction() as tx:
        await users.insert(tx, user, email_key="jo@example.com")
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty))[0].name == "time_zones"
    async with empty.transaction() as tx:
        assert await users.by_id(tx, "usr_1") == user
        await users.set_time_zone(tx, "usr_1", "Europe/Berlin")
        changed = await users.by_id(tx, "usr_1")
    assert changed is not None
    assert changed.time_zone == "Europe/Berlin"


async def test_failures_are_counted_by_cause_from_the_version_before_on(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    before = [one.name for one in known(empty.dialect)].index("failure_counts")
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:before])
    await migrations.apply(empty)
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty))[0].name == "failure_counts"
    more = failure_counts.FailureIncrement("acc_1", 7, "google", "mailbox_full", 2, 1)
    async with empty.transaction() as tx:
        await failure_counts.add(tx, [more])
        await failure_counts.add(tx, [more])
        assert await failure_counts.between(tx, "acc_1", from_hour=7, until_hour=8) == [
            failure_counts.FailureTotal(7, "google", "mailbox_full", 4, 2)
        ]
        assert await failure_counts.between(tx, "acc_1", from_hour=8, until_hour=9) == []
