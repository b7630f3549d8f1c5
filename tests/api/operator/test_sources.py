"""`/v1/operator/sources`: source addresses with their states, warm-up and attempts, and changes at run time."""

from typing import Any

import msgspec
import pytest_asyncio

from postroad import config, context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.storage.mail import delivery_controls, mail_counts
from tests import contexts
from tests.api.operator.conftest import Operator

PATH = "/v1/operator/sources"
CAPS = (4, 8)


@pytest_asyncio.fixture(autouse=True)
async def settings(ctx: context.Context) -> None:
    """Two addresses."""
    ours = (
        config.Source(name="out1", address="192.0.2.1", hello_name="out1.example.org"),
        config.Source(name="out2", address="192.0.2.2"),
    )
    msgspec.structs.force_setattr(ctx.settings, "sources", ours)
    warmup = msgspec.structs.replace(ctx.settings.warmup, source_recipients_per_day=CAPS)
    msgspec.structs.force_setattr(ctx.settings, "warmup", warmup)


async def ask(operator: Operator, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await operator.http.request(method, f"{PATH}/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["source"]
    return found


def of_provider(source: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in source["providers"] if one["provider"] == name]
    return dict(found)


async def test_source_addresses_are_listed_with_attempts_by_provider(ctx: context.Context, operator: Operator) -> None:
    today = times.day_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        rows = [
            mail_counts.SourceCount("out1", "google", today, delivered=5, refused=2, blocked=2),
            mail_counts.SourceCount("out1", "google", today - 7, deferred=3),
            mail_counts.SourceCount("out1", "google", today - 8, delivered=100),
        ]
        await mail_counts.add_sources(tx, rows)
        await mail_counts.add_sources(tx, rows[:1])
    listed = (await operator.http.get(PATH)).json()["sources"]
    assert [(one["name"], one["address"], one["hello_name"], one["pool"], one["state"]) for one in listed] == [
        ("out1", "192.0.2.1", "out1.example.org", "default", "active"),
        ("out2", "192.0.2.2", "", "default", "active"),
    ]
    assert of_provider(listed[0], "google") == {
        "provider": "google",
        "delivered": 10,
        "deferred": 3,
        "refused": 4,
        "blocked": 4,
        "paused": None,
        "warmup": [],
    }
    assert of_provider(listed[1], "google")["delivered"] == 0


async def test_an_address_is_paused_for_a_time_drained_and_resumed(
    ctx: context.Context, clock: contexts.Clock, operator: Operator
) -> None:
    until = times.to_wire(ctx.clock() + 60 * times.SECOND)
    paused = await ask(operator, "POST", "out1/pause", {"reason": "listed", "until": until})
    assert paused["state"] == "paused"
    (change,) = paused["changes"]
    assert (change["reason"], change["set_by"], change["until"]) == ("listed", operator.user_id, until)
    clock.pass_seconds(61)
    assert (await ask(operator, "GET", "out1"))["state"] == "active"
    assert (await ask(operator, "POST", "out1/drain", {"reason": "moves"}))["state"] == "draining"
    assert (await ask(operator, "POST", "out1/resume", {}))["state"] == "active"
    assert (await operator.http.post(f"{PATH}/out1/resume", json={})).status_code == 409
    entries = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=10)
    assert {audit_log.text(one) for one in entries if one.action.startswith("source.")} == {
        "paused the source address out1 (listed)",
        "began to drain the source address out1 (moves)",
        "resumed the source address out1",
    }


async def test_an_address_is_paused_for_one_provider(operator: Operator) -> None:
    paused = await ask(operator, "POST", "out1/pause", {"reason": "blocked", "provider": "google"})
    assert (paused["state"], paused["changes"]) == ("active", [])
    assert of_provider(paused, "google")["paused"]["reason"] == "blocked"
    assert of_provider(paused, "yahoo")["paused"] is None
    resumed = await ask(operator, "POST", "out1/resume", {"provider": "google"})
    assert of_provider(resumed, "google")["paused"] is None


async def test_a_warm_up_is_a_calendar_for_each_provider(ctx: context.Context, operator: Operator) -> None:
    assert (await ask(operator, "POST", "out2/warm-up"))["state"] == "warming"
    now = ctx.clock()
    today = times.day_of(now)
    began = delivery_controls.SourceState("out2", "", "warming", "", "", now - times.DAY)
    async with ctx.store.transaction() as tx:
        await delivery_controls.put_source_state(tx, began)
        used = [
            mail_counts.SourceCount("out2", "google", today - 2, delivered=99),  # before it began
            mail_counts.SourceCount("out2", "google", today - 1, delivered=3, deferred=1),
            mail_counts.SourceCount("out2", "google", today, delivered=1),
            mail_counts.SourceCount("out2", "yahoo", today - 1, delivered=1),
        ]
        await mail_counts.add_sources(tx, used)
    seen = await ask(operator, "GET", "out2")
    assert of_provider(seen, "google")["warmup"] == [
        {"number": 1, "recipients": 4, "used": None, "state": "done"},
        {"number": 2, "recipients": 8, "used": 1, "state": "today"},
    ]
    assert [day["state"] for day in of_provider(seen, "yahoo")["warmup"]] == ["today", "ahead"]
    paused = await ask(operator, "POST", "out2/pause", {"reason": "x"})
    assert (paused["state"], len(paused["changes"])) == ("paused", 2)
    assert (await ask(operator, "POST", "out2/resume", {}))["state"] == "warming"
    ended = await ask(operator, "DELETE", "out2/warm-up")
    assert (ended["state"], of_provider(ended, "google")["warmup"]) == ("active", [])
    assert (await operator.http.delete(f"{PATH}/out2/warm-up")).status_code == 409


async def test_impossible_changes_are_refused(ctx: context.Context, operator: Operator) -> None:
    past = times.to_wire(ctx.clock() - 1)
    for body in ({}, {"reason": "x", "until": past}, {"reason": "x", "provider": "nobody"}):
        answer = await operator.http.post(f"{PATH}/out1/pause", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), body
    answer = await operator.http.post(f"{PATH}/out9/pause", json={"reason": "x"})
    assert (answer.status_code, answer.json()["error"]) == (404, "no such source address; there are: out1, out2")
