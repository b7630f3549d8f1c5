"""Versions side by side: an older process may run on a newer schema that says so, and on no other."""

import pytest

from postroad.storage import accounts, consistency, installation_key, migrations, open_store
from postroad.storage.store import ConstraintViolated, Store

OLD_ACCOUNT = """
INSERT INTO accounts (id, name, status, suspended_reason, available, reserved, created_at)
VALUES ('{account_id}', 'Shop', 'active', NULL, 0, 0, 1)"""


async def record(store: Store, version: int, *, compatible_from: int | None) -> None:
    """As if a newer version had migrated the database."""
    async with store.transaction() as tx:
        await tx.execute("migrations.record", version, "from_the_future")
        if compatible_from is not None:
            await tx.execute("migrations.record_compatibility", version, compatible_from)


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_newer_schema_that_is_compatible_is_opened(database_url: str, store: Store, *, migrate: bool) -> None:
    newest = migrations.known(store.dialect)[-1].version
    await record(store, newest + 1, compatible_from=newest - 1)
    await record(store, newest + 2, compatible_from=newest)
    opened = await open_store.open_current(database_url, migrate=migrate)
    await opened.close()
    assert await migrations.state_of(store) == (newest + 2, [], False)


@pytest.mark.parametrize("beyond", [None, 1])
async def test_a_newer_schema_with_one_step_that_is_not_compatible_is_refused(
    database_url: str, store: Store, beyond: int | None
) -> None:
    newest = migrations.known(store.dialect)[-1].version
    await record(store, newest + 1, compatible_from=None if beyond is None else newest + beyond)
    await record(store, newest + 2, compatible_from=newest)
    expected = (
        f"the database schema is at version {newest + 2} and does not work with this version, "
        f"which knows only {newest}: use a newer Postroad"
    )
    for migrate in (True, False):
        with pytest.raises(migrations.SchemaError) as refused:
            await open_store.open_current(database_url, migrate=migrate)
        assert str(refused.value) == expected
    assert (await migrations.state_of(store)).is_too_new


def test_every_new_migration_says_which_code_it_works_with() -> None:
    for dialect in ("sqlite", "postgres"):
        for one in migrations.known(dialect)[12:]:
            assert one.compatible_from is not None, one.name
            assert one.compatible_from <= one.version
    said = {dialect: [one.compatible_from for one in migrations.known(dialect)] for dialect in ("sqlite", "postgres")}
    assert said["sqlite"] == said["postgres"]
    assert said["sqlite"][11:13] == [None, 12]


async def test_applied_migrations_keep_what_they_are_compatible_with(store: Store) -> None:
    async with store.reading() as tx:
        assert await tx.fetch_one("migrations.incompatible", 12) is None
        row = await tx.fetch_one("migrations.incompatible", 11)
        assert row is not None
        assert tuple(row) == (12,)


async def test_accounts_come_through_and_keep_names_that_they_share(
    new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    before = [one.name for one in known("sqlite")].index("installation")
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:before])
    opened = await open_store.open_current(new_database_url, migrate=True)
    try:
        async with opened.transaction() as tx:
            for account_id in ("acc_1", "acc_2"):
                await tx.run_script(OLD_ACCOUNT.format(account_id=account_id))
        monkeypatch.setattr(migrations, "known", known)
        assert [one.name for one in (await migrations.apply(opened)).migrations][:2] == ["installation", "accounts"]
        async with opened.transaction() as tx:
            await tx.run_script(OLD_ACCOUNT.format(account_id="acc_3"))  # by a process of the version before
            found = await accounts.by_name(tx, "sHOP", limit=9)
            assert [(one.id, one.state, one.unlimited, one.has_uncharged) for one in found] == [
                ("acc_1", "active", 0, 0),
                ("acc_2", "active", 0, 0),
                ("acc_3", "active", 0, 0),
            ]
            assert await installation_key.fingerprint(tx) is None
            assert await consistency.findings(tx) == []
        for change in (
            "UPDATE accounts SET unlimited = 2",
            "UPDATE accounts SET has_uncharged = 2",
            "UPDATE accounts SET name_key = 'shop'",
        ):
            with pytest.raises(ConstraintViolated):
                async with opened.transaction() as tx:
                    await tx.run_script(change)
    finally:
        await opened.close()
