"""`/v1/operator/accounts`: accounts are found, shown and changed, and their own audit log tells it."""

from typing import Any

from postroad import context
from postroad.model.people import callers
from postroad.services import audit_log
from postroad.services.domains import domain_registry as domains
from postroad.services.people import users
from postroad.storage.mail import mail_counts
from tests.api import management
from tests.api.operator.conftest import Operator


async def found(operator: Operator, **query: str) -> list[str]:
    answer = await operator.http.get("/v1/operator/accounts", params=query)
    assert answer.status_code == 200, answer.text
    return [one["name"] for one in answer.json()["accounts"]]


async def test_accounts_are_found_by_name_id_domain_and_user(
    ctx: context.Context, operator: Operator, theirs: management.AccountClients
) -> None:
    await domains.add(ctx, theirs.account_id, "their.example", verified=True)
    await users.create(ctx, theirs.account_id, email="Ada@their.example", password=None, role=callers.Role.OWNER)
    assert await found(operator) == ["Mine", "Theirs"]
    for text in ("THEIR", theirs.account_id, "their.example", "ada@Their.example"):
        assert await found(operator, search=text) == ["Theirs"], text
    for text in ("%", "_", "nothing", "!", "a\0b"):
        assert await found(operator, search=text) == [], text


async def test_the_list_has_pages_and_states(
    ctx: context.Context, operator: Operator, theirs: management.AccountClients
) -> None:
    first = (await operator.http.get("/v1/operator/accounts", params={"limit": 1})).json()
    assert [one["name"] for one in first["accounts"]] == ["Mine"]
    assert await found(operator, cursor=first["next_cursor"]) == ["Theirs"]
    await operator.http.post(f"/v1/operator/accounts/{theirs.account_id}/close")
    assert await found(operator, state="closed") == ["Theirs"]
    assert await found(operator, state="suspended") == []
    assert await found(operator, state="active") == ["Mine"]
    assert (await operator.http.get("/v1/operator/accounts", params={"cursor": "x"})).status_code == 400


async def test_an_account_is_shown_with_its_mail_domains_and_users(
    ctx: context.Context, operator: Operator, theirs: management.AccountClients
) -> None:
    await domains.add(ctx, theirs.account_id, "their.example", verified=True)
    hour = mail_counts.hour_of(ctx.clock())
    async with ctx.store.transaction() as tx:
        row = mail_counts.CountIncrement
        await mail_counts.add_hourly(
            tx,
            [
                row(account_id=theirs.account_id, hour=hour, messages=2, recipients=3),
                row(account_id=theirs.account_id, hour=hour, provider="google", delivered=2, bounced=1, deferred=1),
                row(account_id=theirs.account_id, hour=hour - 24, messages=7, recipients=7),
            ],
        )
    answer = (await operator.http.get(f"/v1/operator/accounts/{theirs.account_id}")).json()["account"]
    assert answer["last_day"] == {
        "messages": 2,
        "recipients": 3,
        "delivered": 2,
        "bounced": 1,
        "failed": 0,
        "deferred": 1,
    }
    assert answer["last_30_days"]["messages"] == 9
    assert [one["name"] for one in answer["domains"]] == ["their.example"]
    assert sorted(one["role"] for one in answer["users"]) == ["owner", "read_only"]
    assert answer["sending"]["state"] in ("ok", "off")
    assert answer["credits"] == {"available": 0, "reserved": 0}


async def test_every_change_is_in_the_accounts_own_audit_log_with_the_operator_as_actor(
    ctx: context.Context, operator: Operator, theirs: management.AccountClients
) -> None:
    path = f"/v1/operator/accounts/{theirs.account_id}"

    async def change(action: str, **body: Any) -> dict[str, Any]:
        answer = await operator.http.post(f"{path}/{action}", json=body or None)
        assert answer.status_code == 200, answer.text
        changed: dict[str, Any] = answer.json()["account"]
        return changed

    suspended = await change("suspend", reason="too many complaints")
    assert (suspended["state"], suspended["suspended_reason"]) == ("suspended", "too many complaints")
    assert (await change("resume"))["state"] == "active"
    assert (await change("credits", amount=500, note="invoice 7"))["credits"]["available"] == 500
    renamed = await operator.http.patch(path, json={"name": "Other", "credits_unlimited": True})
    assert (renamed.json()["account"]["name"], renamed.json()["account"]["credits_unlimited"]) == ("Other", True)
    limits = {"request_rate": 5, "recipients_per_day": 1_000}
    limited = (await operator.http.patch(path, json=limits)).json()["account"]
    assert {name: limited[name] for name in limits} == limits
    unlimited = (await operator.http.patch(path, json={"recipients_per_day": None})).json()["account"]
    assert (unlimited["request_rate"], unlimited["recipients_per_day"]) == (5, None)
    assert (await change("close"))["state"] == "closed"
    assert (await change("reopen"))["state"] == "active"
    written = await audit_log.page(ctx, theirs.account_id, before=None, limit=20)
    assert {(one.actor, one.user_id) for one in written if one.action != "account.created"} == {
        ("operator", operator.user_id)
    }


async def test_impossible_changes_are_refused_with_a_sentence(
    operator: Operator, theirs: management.AccountClients
) -> None:
    path = f"/v1/operator/accounts/{theirs.account_id}"
    for endpoint, body in (("suspend", {"reason": ""}), ("credits", {"amount": 0}), ("suspend", {})):
        assert (await operator.http.post(f"{path}/{endpoint}", json=body)).status_code == 400, endpoint
    for body in ({}, {"request_rate": 0}, {"recipients_per_day": 1_000_000_001}, {"request_rate": "5"}):
        assert (await operator.http.patch(path, json=body)).status_code == 400, body
    assert (await operator.http.patch(path, json={"name": "mine"})).json()["code"] == "conflict"
    assert (await operator.http.post(f"{path}/reopen")).status_code == 409
    unknown = "/v1/operator/accounts/acc_00000000000000ffffffffffffff"
    assert (await operator.http.get(unknown)).status_code == 404
    assert (await operator.http.post(f"{unknown}/close")).status_code == 404
