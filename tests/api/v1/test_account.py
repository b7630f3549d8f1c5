"""`/v1/account` shows the caller's account, its credits and the ledger behind them."""

import pytest

from postroad import context, errors
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from tests import accepted_mail, bounce_counts, contexts
from tests.api.management import AccountClients


async def test_the_account_is_shown_with_its_credits(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id, amount=10)
    await accepted_mail.accept(ctx, mine.account_id, to=("a@example.net", "b@example.net"))
    response = await mine.owner.get("/v1/account")
    assert response.status_code == 200
    assert response.json() == {
        "account": {
            "id": mine.account_id,
            "name": "Mine",
            "status": "active",
            "suspended_reason": None,
            "suspended_by": None,
            "credits": {"available": 8, "reserved": 2},
            "created_at": "2027-01-15T08:00:00.000Z",
            "suspended_until": None,
            "sending": {
                "state": "ok",
                "days": 7,
                "recipients": 0,
                "bounces": 0,
                "bounce_percent": 0.0,
                "complaints": 0,
                "complaint_percent": 0.0,
                "min_recipients": 200,
                "warn_percent": 4.0,
                "suspend_percent": 8.0,
                "complaint_warn_percent": 0.08,
                "complaint_suspend_percent": 0.3,
            },
            "credits_unlimited": False,
            "second_factor_required": False,
        },
        "request_id": response.headers["x-request-id"],
    }


async def test_a_suspension_is_shown_with_its_reason(ctx: context.Context, mine: AccountClients) -> None:
    await accounts.suspend(ctx, mine.account_id, "too many bounces")
    account = (await mine.reader.get("/v1/account")).json()["account"]
    assert (account["status"], account["suspended_reason"]) == ("suspended", "too many bounces")
    assert (account["suspended_by"], account["suspended_until"], account["sending"]["state"]) == (
        "operator",
        None,
        "ok",
    )


async def test_what_the_bounce_guard_has_counted_is_shown_and_its_suspension_is_in_refusals(
    ctx: context.Context, mine: AccountClients
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    await bounce_counts.count(ctx, mine.account_id, recipients=199, bounces=15)
    account = (await mine.reader.get("/v1/account")).json()["account"]
    assert (account["status"], account["sending"]["state"]) == ("active", "ok")
    await bounce_counts.count(ctx, mine.account_id, recipients=1)
    stands = (await mine.reader.get("/v1/account")).json()["account"]["sending"]
    assert (stands["state"], stands["recipients"], stands["bounces"], stands["bounce_percent"]) == (
        "warned",
        200,
        15,
        7.5,
    )
    await bounce_counts.count(ctx, mine.account_id, bounces=1, complaints=1)
    account = (await mine.reader.get("/v1/account")).json()["account"]
    assert (account["status"], account["suspended_by"]) == ("suspended", "bounce_guard")
    assert (account["sending"]["state"], account["suspended_until"]) == ("suspended", "2027-01-16T08:00:00.000Z")
    assert account["suspended_reason"].endswith("Sending resumes on 2027-01-16 at 08:00 UTC")
    assert account["sending"]["complaint_percent"] == 0.5
    assert "16 of the last 200 recipients (8.00%) do not exist" in account["suspended_reason"]
    with pytest.raises(errors.AccountSuspended, match="16 of the last 200"):
        await accepted_mail.accept(ctx, mine.account_id)


async def test_the_ledger_is_read_in_parts_newest_first(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    for amount in (1, 2, 3):
        await credits.add(ctx, mine.account_id, amount, f"gift {amount}")
        clock.pass_seconds(1)
    first = (await mine.reader.get("/v1/account/ledger", params={"limit": 2})).json()
    assert [entry["note"] for entry in first["entries"]] == ["gift 3", "gift 2"]
    assert first["next_before"] == first["entries"][-1]["id"]
    rest = (await mine.reader.get("/v1/account/ledger", params={"before": first["next_before"]})).json()
    assert rest["next_before"] is None
    assert rest["entries"] == [
        {
            "id": rest["entries"][0]["id"],
            "kind": "grant",
            "available": 1,
            "reserved": 0,
            "message_id": None,
            "note": "gift 1",
            "created_at": "2027-01-15T08:00:00.000Z",
        }
    ]


async def test_a_reservation_names_its_message(
    ctx: context.Context, mine: AccountClients, clock: contexts.Clock
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    clock.pass_seconds(1)
    message_id = await accepted_mail.accept(ctx, mine.account_id)
    newest = (await mine.owner.get("/v1/account/ledger")).json()["entries"][0]
    assert (newest["kind"], newest["message_id"]) == ("reserve", message_id)
    assert (newest["available"], newest["reserved"]) == (-1, 1)


async def test_the_ledger_is_downloaded_as_a_file(ctx: context.Context, mine: AccountClients) -> None:
    await credits.add(ctx, mine.account_id, 5, "+1 for you")
    response = await mine.reader.get("/v1/account/ledger.csv")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="ledger.csv"'
    head, entry = response.text.splitlines()
    assert head == "created_at,kind,available,reserved,available_after,reserved_after,message_id,note,id"
    assert entry.startswith("2027-01-15T08:00:00.000Z,grant,5,0,5,0,,'+1 for you,led_")


async def test_an_owner_requires_a_second_factor_of_everybody(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients, clock: contexts.Clock
) -> None:
    for required, action in ((True, "account.second_factor_required"), (False, "account.second_factor_optional")):
        for _ in range(2):
            clock.pass_seconds(1)
            answer = await mine.owner.patch("/v1/account", json={"second_factor_required": required})
            assert answer.status_code == 200
            assert answer.json()["account"]["second_factor_required"] is required
        assert (await mine.reader.get("/v1/account")).json()["account"]["second_factor_required"] is required
        assert (await theirs.owner.get("/v1/account")).json()["account"]["second_factor_required"] is False
        entries = (await mine.reader.get("/v1/audit-log?limit=100")).json()["entries"]
        assert [entry["action"] for entry in entries].count(action) == 1
    refused = await mine.reader.patch("/v1/account", json={"second_factor_required": True})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    for body in ({}, {"second_factor_required": "yes"}, {"second_factor_required": None}):
        assert (await mine.owner.patch("/v1/account", json=body)).status_code == 400
