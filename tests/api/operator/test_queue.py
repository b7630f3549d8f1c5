"""`/v1/operator/queue`: the queue of all accounts in numbers and rows, and the changes of an operator."""

import asyncio
from typing import Any

import pytest
import pytest_asyncio

from postroad import context
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.accounts import account_registry
from postroad.services.messages import lookup
from postroad.services.operations import operator_jobs, operator_queue, operator_state
from tests import accepted_mail, contexts, queue_steps
from tests.api import management
from tests.api.operator.conftest import Operator

PATH = "/v1/operator/queue"


@pytest_asyncio.fixture
async def mail(
    ctx: context.Context, clock: contexts.Clock, operator: Operator, theirs: management.AccountClients
) -> tuple[str, str]:
    """Two accounts: one with a deferred and a new recipient, one with three new ones, half an hour later."""
    mine, other = operator.account_id, theirs.account_id
    for account_id, domain in ((mine, "example.com"), (other, "their.example")):
        await accepted_mail.allow_sending(ctx, account_id, domain=domain)
    await accepted_mail.accept(ctx, mine)
    (key,) = await queue_steps.claim(ctx, mine)
    await queue_steps.defer(ctx, key, seconds=9 * 3600)
    clock.pass_seconds(1800)
    await accepted_mail.accept(ctx, mine, to=("bob@example.org",))
    await accepted_mail.accept(
        ctx, other, sender="shop@their.example", to=("a@example.org", "b@example.org", "c@example.net")
    )
    return mine, other


async def job(operator: Operator, action: str, **body: Any) -> dict[str, Any]:
    """Start a job and wait for its end."""
    answer = await operator.http.post(f"{PATH}/{action}", json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()["job"]
    while found["state"] == "running":
        await asyncio.sleep(0.01)
        found = (await operator.http.get(f"/v1/operator/jobs/{found['id']}")).json()["job"]
    return found


async def test_the_queue_in_numbers(operator: Operator, mail: tuple[str, str]) -> None:
    mine, other = mail
    await operator.http.post(f"{PATH}/hold", json={"account_id": other, "domain": "example.net", "reason": "checks"})
    answer = (await operator.http.get(PATH)).json()
    while answer["counted_at"] is None:  # on a very slow machine
        answer = (await operator.http.get(PATH)).json()
    assert answer["recipients"] == 5
    assert answer["states"] == {"ready": 3, "waiting": 1, "scheduled": 0, "sending": 0, "held": 1}
    assert {name: number for name, number in answer["ages"].items() if number} == {
        "under_1_minute": 4,
        "under_1_hour": 1,
    }
    assert [(one["account_id"], one["name"], one["recipients"]) for one in answer["accounts"]] == [
        (other, "Theirs", 3),
        (mine, "Mine", 2),
    ]
    assert [(one["domain"], one["recipients"]) for one in answer["domains"]] == [
        ("example.org", 3),
        ("example.net", 2),
    ]
    assert answer["last_hours"] == {"accepted": 5, "delivered": 0, "bounced": 0, "failed": 0, "deferred": 1}
    assert answer["causes"] == [
        {
            "provider_queue": "google",
            "reason": "greylisted",
            "explanation": answer["causes"][0]["explanation"],
            "recipients": 1,
        }
    ]
    assert [(one["account_id"], one["domain"], one["reason"]) for one in answer["holds"]] == [
        (other, "example.net", "checks")
    ]


async def test_a_count_that_takes_long_is_not_waited_for(
    ctx: context.Context, operator: Operator, state: operator_state.OperatorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = asyncio.Event()
    counted = operator_queue._count_summary

    async def slow(given: context.Context) -> operator_queue.Summary:
        await may_end.wait()
        return await counted(given)

    monkeypatch.setattr(operator_queue, "_count_summary", slow)
    monkeypatch.setattr(operator_queue, "WAIT_SECONDS", 0.01)
    assert (await operator.http.get(PATH)).json()["counted_at"] is None
    may_end.set()
    await state.queue._flights._wait()
    assert (await operator.http.get(PATH)).json()["counted_at"] is not None


async def test_nobody_waits_for_a_count_where_the_last_one_took_long(
    ctx: context.Context, operator: Operator, state: operator_state.OperatorState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_queue, "WAIT_SECONDS", 0)
    monkeypatch.setattr(operator_queue, "MIN_REFRESH_SECONDS", 0)
    monkeypatch.setattr(operator_queue, "REST_FACTOR", 0)
    await operator.http.get(PATH)
    await state.queue._flights._wait()
    before = state.queue.last
    assert before is not None
    may_end = asyncio.Event()

    async def endless(_given: context.Context) -> operator_queue.Summary:
        await may_end.wait()
        return before

    monkeypatch.setattr(operator_queue, "_count_summary", endless)
    monkeypatch.setattr(operator_queue, "WAIT_SECONDS", 3600)
    assert (await operator.http.get(PATH)).json()["counted_at"] == times.to_wire(before.at or 0)
    assert "count" in state.queue._flights
    may_end.set()
    await state.queue._flights._wait()


async def rows(operator: Operator, **query: str) -> list[str]:
    """The emails of all pages."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(20):
        answer = await operator.http.get(f"{PATH}/recipients", params={**query, **cursor})
        assert answer.status_code == 200, answer.text
        found += [one["email"] for one in answer.json()["recipients"]]
        if answer.json()["next_cursor"] is None:
            return sorted(found)
        cursor = {"cursor": answer.json()["next_cursor"]}
    raise AssertionError("the list has no end")


@pytest.mark.parametrize("examined", [1, 2, 10_000])
async def test_the_list_is_filtered_and_comes_in_pages(
    operator: Operator, mail: tuple[str, str], monkeypatch: pytest.MonkeyPatch, examined: int
) -> None:
    monkeypatch.setattr(operator_queue, "MAX_EXAMINED", examined)
    mine, other = mail
    everyone = ["a@example.org", "ada@example.net", "b@example.org", "bob@example.org", "c@example.net"]
    assert await rows(operator) == everyone
    assert await rows(operator, limit="2") == everyone
    assert await rows(operator, account_id=mine) == ["ada@example.net", "bob@example.org"]
    assert await rows(operator, domain="EXAMPLE.org") == ["a@example.org", "b@example.org", "bob@example.org"]
    assert await rows(operator, account_id=other, domain="example.net") == ["c@example.net"]
    assert await rows(operator, state="waiting") == ["ada@example.net"]


async def test_each_row_says_why_it_waits_and_a_wrong_cursor_is_refused(
    operator: Operator, mail: tuple[str, str]
) -> None:
    (one,) = (await operator.http.get(f"{PATH}/recipients", params={"state": "waiting"})).json()["recipients"]
    assert one["why"].startswith("Google asked us to try later (4.7.1); next attempt at ")
    assert (one["provider_queue"], one["last_smtp_code"], one["attempt_count"]) == ("google", 451, 1)
    for cursor in ("x", "acc_1.em_1.rcp_1", "..", "a" * 100):
        assert (await operator.http.get(f"{PATH}/recipients", params={"cursor": cursor})).status_code == 400


@pytest.mark.parametrize("examined", [1, 500])
async def test_a_retry_is_counted_first_and_is_in_both_audit_logs_after(
    ctx: context.Context,
    operator: Operator,
    mail: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    examined: int,
) -> None:
    monkeypatch.setattr(operator_queue, "EXAMINED", examined)
    mine, _ = mail
    counted = await operator.http.post(f"{PATH}/retry", json={"all": True, "dry_run": True})
    assert (counted.status_code, counted.json()["recipients"], counted.json()["complete"]) == (200, 1, True)
    assert await rows(operator, state="waiting") == ["ada@example.net"]
    done = await job(operator, "retry", all=True)
    assert (done["state"], done["kind"], done["result"]) == ("finished", "queue.retry", {"changed": 1})
    assert await rows(operator, state="waiting") == []
    entries = await audit_log.page(ctx, audit_log.INSTALLATION, before=None, limit=10)
    assert "retried 1 recipient in the queue (all mail)" in [audit_log.text(one) for one in entries]
    own = await audit_log.page(ctx, mine, before=None, limit=10)
    assert [(one.actor, one.subject) for one in own if one.action == "message.retried"] == [("operator", "1 recipient")]


async def test_a_cancellation_ends_recipients_of_the_selection_only(
    ctx: context.Context, operator: Operator, mail: tuple[str, str]
) -> None:
    _, other = mail
    body = {"account_id": other, "domain": "example.org"}
    counted = (await operator.http.post(f"{PATH}/cancel", json={**body, "dry_run": True})).json()
    assert counted["recipients"] == 2
    assert (await job(operator, "cancel", **body))["result"] == {"changed": 2}
    assert await rows(operator) == ["ada@example.net", "bob@example.org", "c@example.net"]
    assert (await operator_jobs.check_consistency(ctx)).findings == []


async def test_what_an_operator_expires_costs_nothing(
    ctx: context.Context, operator: Operator, mail: tuple[str, str]
) -> None:
    _, other = mail
    before = await account_registry.find(ctx, other)
    counted = (await operator.http.post(f"{PATH}/expire", json={"account_id": other, "dry_run": True})).json()
    assert counted["recipients"] == 3
    assert (await job(operator, "expire", account_id=other))["result"] == {"changed": 3}
    assert await rows(operator, account_id=other) == []
    after = await account_registry.find(ctx, other)
    assert (after.available - before.available, before.reserved - after.reserved) == (3, 3)
    found = await lookup.search(ctx, other, "status:expired", limit=9, cursor=None)
    assert len(found.messages) == 1
    assert (await operator_jobs.check_consistency(ctx)).findings == []
    own = await audit_log.page(ctx, other, before=None, limit=10)
    assert "expired 3 recipients before their time" in [audit_log.text(one) for one in own]


async def test_no_selection_does_not_mean_everything(operator: Operator, mail: tuple[str, str]) -> None:
    mine, _ = mail
    for body in ({}, {"dry_run": True}, {"all": True, "account_id": mine}, {"all": False}):
        for action in ("retry", "cancel", "expire"):
            answer = await operator.http.post(f"{PATH}/{action}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert (await operator.http.post(f"{PATH}/hold", json={"reason": "x"})).status_code == 400
    unknown = {"account_id": "acc_00000000000000ffffffffffffff"}
    assert (await operator.http.post(f"{PATH}/cancel", json=unknown)).status_code == 404


async def test_holds_are_set_listed_and_released(
    ctx: context.Context, operator: Operator, mail: tuple[str, str]
) -> None:
    _, other = mail
    held = await operator.http.post(f"{PATH}/hold", json={"account_id": other, "reason": "spam?"})
    assert [(one["account_id"], one["domain"], one["reason"]) for one in held.json()["holds"]] == [
        (other, None, "spam?")
    ]
    assert await rows(operator, state="held") == ["a@example.org", "b@example.org", "c@example.net"]
    assert (await operator.http.post(f"{PATH}/release", json={"all": True})).status_code == 404
    released = await operator.http.post(f"{PATH}/release", json={"account_id": other})
    assert released.json()["holds"] == []
    own = await audit_log.page(ctx, other, before=None, limit=10)
    assert {one.action for one in own} >= {"delivery.held", "delivery.released"}


async def test_a_selection_that_is_too_long_to_count_has_the_number_of_the_last_count(
    ctx: context.Context,
    operator: Operator,
    state: operator_state.OperatorState,
    mail: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine, other = mail
    state.queue.last = await operator_queue._count_summary(ctx)
    monkeypatch.setattr(operator_queue, "COUNT_SECONDS", 0)
    for body, expected in (
        ({"all": True}, 5),
        ({"account_id": other}, 3),
        ({"domain": "example.org"}, 3),
        ({"account_id": mine, "domain": "example.org"}, 0),
    ):
        answer = await operator.http.post(f"{PATH}/cancel", json={**body, "dry_run": True})
        assert (answer.json()["recipients"], answer.json()["complete"]) == (expected, False), body
