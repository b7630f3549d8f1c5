"""`/v1/operator/providers`: provider queues with their limits and why, and changes at run time."""

from typing import Any

from postroad import context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.storage.mail import mail_counts
from postroad.storage.operations import processes
from tests import contexts
from tests.api.operator.conftest import Operator

PATH = "/v1/operator/providers"


async def provider(operator: Operator, name: str = "google") -> dict[str, Any]:
    answer = await operator.http.get(f"{PATH}/{name}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["provider"]
    return found


async def test_providers_are_listed_with_what_hosts_report_of_them(ctx: context.Context, operator: Operator) -> None:
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        reports = [
            processes.QueueStatus("mail1-7:a", "google", "slowed", "421 4.7.28 too fast", now, now),
            processes.QueueStatus("mail2-8:b", "google", "paused", "421 4.7.0 later", now + 5, now),
            processes.QueueStatus("mail2-8:b", "mx.slow.example", "blocked", "timeout", now + 5, now),
            processes.QueueStatus("mail3-9:c", "apple", "blocked", "gone", now, now - 91_000_000),
        ]
        await processes.put_queues(tx, reports)
        counted = mail_counts.CountIncrement(
            account_id=operator.account_id,
            hour=mail_counts.hour_of(now),
            provider="google",
            delivered=3,
            deferred=1,
            delivery_time=6_000_000,
        )
        await mail_counts.add_hourly(tx, [counted])
    listed = (await operator.http.get(PATH)).json()["providers"]
    while listed[0]["last_hours"] is None:  # counted in the background, on a very slow machine
        listed = (await operator.http.get(PATH)).json()["providers"]
    assert [(one["name"], one["state"]) for one in listed] == [
        ("google", "paused"),
        ("microsoft", "open"),
        ("yahoo", "open"),
        ("apple", "open"),
        ("others", "open"),
        ("mx.slow.example", "blocked"),
    ]
    google = listed[0]
    assert [(one["worker"], one["state"], one["last_error"]) for one in google["hosts"]] == [
        ("mail1-7:a", "slowed", "421 4.7.28 too fast"),
        ("mail2-8:b", "paused", "421 4.7.0 later"),
    ]
    assert google["last_hours"] == {
        "delivered": 3,
        "bounced": 0,
        "failed": 0,
        "deferred": 1,
        "deferred_share": 0.25,
        "delivery_seconds": 2.0,
    }
    assert google["limits"] == google["settings"]
    assert google["change"] is None
    assert (await operator.http.get(f"{PATH}/google")).json()["provider"] == google


async def test_a_provider_is_paused_for_a_time_and_resumed(
    ctx: context.Context, clock: contexts.Clock, operator: Operator
) -> None:
    until = times.to_wire(ctx.clock() + 60 * times.SECOND)
    answer = await operator.http.post(f"{PATH}/google/pause", json={"reason": "they asked", "until": until})
    assert answer.status_code == 200, answer.text
    change = answer.json()["provider"]["change"]
    assert answer.json()["provider"]["state"] == "paused"
    assert (change["pause"], change["limits"]) == ({"reason": "they asked", "until": until}, None)
    assert change["set_by"] == operator.user_id
    clock.pass_seconds(61)
    assert (await provider(operator))["state"] == "open"
    await operator.http.post(f"{PATH}/google/pause", json={"reason": "again"})
    assert (await operator.http.post(f"{PATH}/google/resume")).json()["provider"]["change"] is None
    assert (await operator.http.post(f"{PATH}/google/resume")).status_code == 409
    entries = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=10)
    assert {audit_log.text(one) for one in entries if one.action.startswith("provider.")} == {
        "paused delivery to google (they asked)",
        "paused delivery to google (again)",
        "resumed delivery to google",
    }


async def test_limits_are_changed_and_stay_when_a_pause_ends(ctx: context.Context, operator: Operator) -> None:
    of_settings = (await provider(operator))["settings"]
    body = {"messages_per_second": 3, "reason": "warm-up"}
    changed = (await operator.http.put(f"{PATH}/google/limits", json=body)).json()["provider"]
    assert changed["limits"] == {**of_settings, "messages_per_second": 3}
    assert (changed["settings"], changed["state"]) == (of_settings, "open")
    await operator.http.post(f"{PATH}/google/pause", json={"reason": "wait"})
    await operator.http.post(f"{PATH}/google/resume")
    assert (await provider(operator))["limits"]["messages_per_second"] == 3
    restored = await operator.http.delete(f"{PATH}/google/limits")
    assert restored.json()["provider"]["limits"] == of_settings
    assert (await operator.http.delete(f"{PATH}/google/limits")).status_code == 404


async def test_a_pause_and_changed_limits_have_a_reason_and_an_end_each(
    ctx: context.Context, clock: contexts.Clock, operator: Operator
) -> None:
    soon, later = (times.to_wire(ctx.clock() + seconds * times.SECOND) for seconds in (60, 120))
    pause = {"reason": "they asked", "until": soon}
    limits = {"reason": "warm-up", "until": later}
    await operator.http.post(f"{PATH}/google/pause", json=pause)
    await operator.http.put(f"{PATH}/google/limits", json={"connections": 1, **limits})
    both = await provider(operator)
    assert (both["state"], both["change"]["pause"], both["change"]["limits"]) == ("paused", pause, limits)
    clock.pass_seconds(61)
    after = await provider(operator)
    assert (after["state"], after["change"]["pause"], after["change"]["limits"]) == ("open", None, limits)
    assert after["limits"]["connections"] == 1
    # A new pause does not bring back or prolong anything.
    await operator.http.post(f"{PATH}/google/pause", json={"reason": "again"})
    clock.pass_seconds(60)
    last = await provider(operator)
    assert (last["state"], last["limits"]) == ("paused", last["settings"])
    assert (last["change"]["pause"], last["change"]["limits"]) == ({"reason": "again", "until": None}, None)
    assert (await operator.http.post(f"{PATH}/google/resume")).json()["provider"]["change"] is None


async def test_a_resume_leaves_the_limits_their_reason_and_their_end(ctx: context.Context, operator: Operator) -> None:
    later = times.to_wire(ctx.clock() + 60 * times.SECOND)
    await operator.http.put(f"{PATH}/google/limits", json={"connections": 1, "reason": "warm-up", "until": later})
    await operator.http.post(f"{PATH}/google/pause", json={"reason": "wait"})
    resumed = (await operator.http.post(f"{PATH}/google/resume")).json()["provider"]
    assert (resumed["change"]["pause"], resumed["change"]["limits"]) == (None, {"reason": "warm-up", "until": later})


async def test_others_stands_for_all_hosts_without_a_name_of_their_own(operator: Operator) -> None:
    await operator.http.put(f"{PATH}/others/limits", json={"connections": 1, "reason": "x"})
    await operator.http.put(f"{PATH}/mx.example.org/limits", json={"connections": 7, "reason": "x"})
    assert (await provider(operator, "mx.example.org"))["limits"]["connections"] == 7
    assert (await provider(operator, "microsoft"))["change"] is None


async def test_impossible_changes_are_refused(ctx: context.Context, operator: Operator) -> None:
    past = times.to_wire(ctx.clock() - 1)
    for path, body in (
        ("google/limits", {"reason": "x"}),
        ("google/limits", {"connections": 0, "reason": "x"}),
        ("google/limits", {"connections": 1}),
        ("google/limits", {"connections": 1, "reason": "x", "until": past}),
        ("google/limits", {"connections": 1, "reason": "x", "until": "soon"}),
    ):
        answer = await operator.http.put(f"{PATH}/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request"), body
    assert (await operator.http.post(f"{PATH}/nobody/pause", json={"reason": "x"})).status_code == 404
