"""Addresses that a blocklist names are paused, unless they are the last ones of their pool."""

import json

import msgspec
import pytest

from postroad import config, context
from postroad.mail import notice_kinds
from postroad.model.units import times
from postroad.services.operations.checks import findings, monitor, table
from postroad.services.operations.notices import sender
from postroad.services.queue import sources
from postroad.storage.operations import notices
from tests import contexts
from tests.api import app_server

LISTED = {"192.0.2.1": "bl.example.net"}


@pytest.fixture(autouse=True)
def settings(ctx: context.Context) -> None:
    """Two addresses of one pool, and one of another."""
    ours = (
        config.Source(name="out1", address="192.0.2.1"),
        config.Source(name="out2", address="192.0.2.2"),
        config.Source(name="news", address="192.0.2.3", pool="news"),
    )
    msgspec.structs.force_setattr(ctx.settings, "sources", ours)


async def states(ctx: context.Context) -> list[str]:
    return [one.state for one in await sources.listed(ctx)]


async def told(ctx: context.Context) -> list[dict[str, str]]:
    async with ctx.store.reading() as tx:
        return [json.loads(one.content) for one in await notices.unresolved(tx, limit=9)]


async def test_a_listed_address_is_paused_as_long_as_it_is_listed(ctx: context.Context, clock: contexts.Clock) -> None:
    await sources.pause_listed(ctx, LISTED)
    assert await states(ctx) == ["paused", "active", "active"]
    clock.pass_seconds(2 * 3600)
    await sources.pause_listed(ctx, LISTED)
    clock.pass_seconds(2 * 3600)
    assert await states(ctx) == ["paused", "active", "active"]
    clock.pass_seconds(3600)
    assert await states(ctx) == ["active", "active", "active"]
    (values,) = await told(ctx)
    assert (values["source"], values["blocklist"]) == ("out1", "bl.example.net")
    mail = sender.render(notice_kinds.ADDRESS_BLOCKED, values, link="", footer=sender.Footer())
    assert mail.subject == "bl.example.net lists the source address out1"
    assert mail.text.startswith("The blocklist bl.example.net lists the source address out1.\n\nIt is paused until ")
    assert mail.text.endswith("\n\nFind and stop the cause first, then ask the blocklist to remove the address.\n\n")


async def test_the_last_address_of_a_pool_goes_on_and_the_operators_are_told(ctx: context.Context) -> None:
    # That one provider has blocked it changes nothing.
    await sources.pause_blocked(ctx, "news", "google", "550 5.7.1 blocked")
    await sources.pause_listed(ctx, {**LISTED, "192.0.2.2": "bl.example.net", "192.0.2.3": "bl.example.net"})
    assert await states(ctx) == ["paused", "active", "active"]
    texts = {
        values["source"]: sender.render(notice_kinds.ADDRESS_BLOCKED, values, link="", footer=sender.Footer()).text
        for values in await told(ctx)
        if values.get("blocklist")
    }
    assert {source for source, text in texts.items() if "still used" in text} == {"out2", "news"}
    assert "paused until" in texts["out1"]


async def test_a_pause_that_is_repeated_is_told_as_a_pause(ctx: context.Context, clock: contexts.Clock) -> None:
    await sources.pause_listed(ctx, LISTED)
    await sources.pause(ctx, "out2", reason="mine", until=None)
    clock.pass_seconds(2 * 3600)
    await sources.pause_listed(ctx, {"192.0.2.1": "other.example.net"})
    assert (await states(ctx))[0] == "paused"
    assert [bool(one["until"]) for one in await told(ctx)] == [True, True]


async def test_what_an_operator_has_decided_stays(ctx: context.Context) -> None:
    await sources.pause(ctx, "out1", reason="mine", until=ctx.clock() + times.DAY)
    await sources.pause_listed(ctx, LISTED)
    view = await sources.find(ctx, "out1")
    assert [one.reason for one in view.states] == ["mine"]
    assert await told(ctx) == []


async def test_the_monitor_pauses_what_its_checks_find(ctx: context.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    async def blocklists(_given: object) -> list[findings.Finding]:
        return [findings.Finding(findings.State.ERROR, "it is listed", listed=("192.0.2.1", "bl.example.net"))]

    monkeypatch.setattr(table, "CHECKS", {"blocklists": table.Check(blocklists)})
    await monitor.Monitor(ctx, app_server.CapturedLog().logger()).run()
    assert await states(ctx) == ["paused", "active", "active"]
