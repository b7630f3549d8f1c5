"""The key and the disk: one broken set-up each, and what is said about it."""

import dataclasses
import shutil
import tempfile

import pytest

from postroad import context
from postroad.services.operations import partitions as maintained
from postroad.services.operations.checks import data, findings
from postroad.storage.operations import space
from tests import contexts
from tests.services.operations.checks import setups

MEBIBYTE = 1024 * 1024
DAY = 86_400 * contexts.SECOND
ADVICE = (
    "enlarge the disk, cancel queued mail, release held mail, or shorten retention.body_days and retention.message_days"
)


async def test_a_key_that_does_not_open_the_database_is_an_error(ctx: context.Context) -> None:
    right = setups.given(store=ctx.store)
    assert await setups.told("key", right) == [("ok", "the installation key matches the database", "")]
    other = {"security": {"installation_key": "another one: 9Zs3qT7nYw0Lr5Xd2Kf8Hb1Vc6Jm4Pg"}}
    assert await setups.told("key", setups.given(None, other, store=ctx.store)) == [
        (
            "error",
            "the installation key does not match this database",
            "restore the key that was used before, in security.installation_key or security.installation_key_file",
        )
    ]


async def test_a_weak_key_is_an_error_also_without_a_database() -> None:
    ((state, found, _),) = await setups.told("key", setups.given(None, {"security": {"installation_key": "weak"}}))
    assert state == "error"
    assert found.startswith(
        "security.installation_key: missing or too weak; set at least 32 random bytes, for example from"
    )
    assert await setups.told("key", setups.given()) == [("skipped", "the database cannot be used", "")]


def has_disk(monkeypatch: pytest.MonkeyPatch, *, free: int, total: int = 100_000) -> None:
    usage = shutil._ntuple_diskusage(total * MEBIBYTE, (total - free) * MEBIBYTE, free * MEBIBYTE)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)


TENTH = "(a tenth of the disk; 1,024 are set)"
SPOOL = {"database": {"url": "sqlite:////var/lib/postroad/p.db"}}


@pytest.mark.parametrize("free, state", [(50_000, "ok"), (9_999, "warning"), (500, "error")])
async def test_a_disk_that_is_nearly_full_is_reported(monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    has_disk(monkeypatch, free=free)
    advice = "" if state == "ok" else ADVICE
    found = f"/var/lib/postroad has {free:,} of 100,000 MiB free"
    assert await setups.told("disk", setups.given(None, SPOOL)) == [(state, found, advice)]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "total, free, state, refused",
    [
        (20_000, 4_200, "ok", ""),
        (20_000, 4_000, "warning", "; below 1,024 MiB, all mail is refused (limits.min_free_megabytes)"),
        (20_000, 2_000, "error", "; below 1,024 MiB, all mail is refused (limits.min_free_megabytes)"),
        (
            20_000,
            1_000,
            "error",
            "; all mail is refused now, because less than 1,024 MiB are free (limits.min_free_megabytes)",
        ),
        # On a small disk, a tenth of it.
        (2_000, 900, "ok", ""),
        (2_000, 700, "warning", f"; below 200 MiB {TENTH}, all mail is refused (limits.min_free_megabytes)"),
        (
            2_000,
            150,
            "error",
            f"; all mail is refused now, because less than 200 MiB {TENTH} are free (limits.min_free_megabytes)",
        ),
    ],
)
async def test_a_disk_on_which_mail_is_refused_soon_is_reported(
    ctx: context.Context,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    total: int,
    free: int,
    state: str,
    refused: str,
) -> None:
    has_disk(monkeypatch, free=free, total=total)
    settings = {"database": {"url": database_url}}
    ((found_state, found, advice),) = await setups.told("disk", setups.given(None, settings, store=ctx.store))
    assert found_state == state
    assert found.endswith(f" has {free:,} of {total:,} MiB free{refused}")
    assert advice == (ADVICE if refused else "")


async def sampled(ctx: context.Context, *, free: int, days_ago: float) -> findings.Subject:
    async with ctx.store.transaction() as tx:
        at = setups.NOW - round(days_ago * DAY)
        await space.add_sample(tx, setups.HOST, "/var/lib/postroad", now=at, free_bytes=free * MEBIBYTE)
    return setups.given(None, SPOOL, store=ctx.store)


async def test_the_days_until_a_disk_is_full_come_from_the_growth_of_the_last_week(
    ctx: context.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_disk(monkeypatch, free=20_000)
    now = "/var/lib/postroad has 20,000 of 100,000 MiB free"
    # Older than a week, and not a day old: they tell nothing.
    await sampled(ctx, free=99_000, days_ago=8)
    assert await setups.told("disk", await sampled(ctx, free=30_000, days_ago=0.5)) == [("ok", now, "")]
    told = await setups.told("disk", await sampled(ctx, free=24_000, days_ago=4))
    assert told == [("ok", f"{now} and will be full in 20 days at the growth rate of the last week", "")]
    told = await setups.told("disk", await sampled(ctx, free=50_000, days_ago=5))
    assert told == [("warning", f"{now} and will be full in 3 days at the growth rate of the last week", ADVICE)]
    told = await setups.told("disk", await sampled(ctx, free=90_000, days_ago=6))
    assert told == [("error", f"{now} and will be full in 2 days at the growth rate of the last week", ADVICE)]


async def test_the_free_space_is_measured_for_later(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    has_disk(monkeypatch, free=20_000)
    seen = setups.given(None, SPOOL, store=ctx.store)
    await data.sample(seen)
    await data.sample(dataclasses.replace(seen, store=None))
    async with ctx.store.reading() as tx:
        kept = await space.oldest_sample(tx, setups.HOST, "/var/lib/postroad", since=0)
    assert kept == (setups.NOW, 20_000 * MEBIBYTE)


async def test_a_folder_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    gone = {"database": {"url": "postgresql://localhost/postroad"}}
    assert await setups.told("disk", setups.given(None, gone)) == [
        (
            "error",
            "/nowhere cannot be used: No such file or directory",
            "create it, or choose another in the settings",
        )
    ]


async def partitions_at(ctx: context.Context, *, days: float) -> list[tuple[str, str, str]]:
    running = [setups.process()]
    given = setups.given(store=ctx.store, running=running, clock=setups.NOW + round(days * DAY))
    return await setups.told("partitions", given)


async def test_partitions_that_are_not_kept_are_reported(ctx: context.Context) -> None:
    if ctx.store.dialect == "sqlite":
        told = "SQLite has no partitions: expired mail is deleted row by row"
        assert await partitions_at(ctx, days=1000) == [("ok", told, "")]
        return
    well = [("ok", "partitions of mail begin and are dropped in time", "")]
    advice = (
        "look for partitions_deferred or partitions_failed in the log of the maintenance role, for long transactions, "
        "and for much held or scheduled mail"
    )
    assert await partitions_at(ctx, days=0.05) == well
    assert await partitions_at(ctx, days=0.1) == [
        ("warning", "bodies has only its first partition: expired mail is deleted row by row", advice),
        ("warning", "messages has only its first partition: expired mail is deleted row by row", advice),
    ]
    await maintained.keep(ctx)
    assert await partitions_at(ctx, days=6) == well
    ended = "was begun after 2027-01-22: the newest takes all mail, and grows"
    assert await partitions_at(ctx, days=8) == [
        ("warning", f"no partition of bodies {ended}", advice),
        ("warning", f"no partition of messages {ended}", advice),
    ]
    assert (await partitions_at(ctx, days=7 + 30 + 2))[:2] == [
        ("warning", f"no partition of bodies {ended}", advice),
        ("warning", "the partition of bodies until 2027-01-22 has expired, and was not dropped", advice),
    ]
