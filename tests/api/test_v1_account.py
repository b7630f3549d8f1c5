"""`/v1/account` shows the caller's account, its credits and the ledger behind them."""

from postroad.services import accounts, context, credits
from tests import contexts, mailing
from tests.api.management import Office


async def test_the_account_is_shown_with_its_credits(ctx: context.Context, mine: Office, clock: contexts.Clock) -> None:
    await mailing.allow(ctx, mine.account_id, amount=10)
    await mailing.accept(ctx, mine.account_id, to=("a@example.net", "b@example.net"))
    response = await mine.owner.get("/v1/account")
    assert response.status_code == 200
    assert response.json() == {
        "account": {
            "id": mine.account_id,
            "name": "Mine",
            "status": "active",
            "suspended_reason": None,
            "credits": {"available": 8, "reserved": 2},
            "created_at": "2027-01-15T08:00:00.000Z",
        },
        "request_id": response.headers["x-request-id"],
    }


async def test_a_suspension_is_shown_with_its_reason(ctx: context.Context, mine: Office) -> None:
    await accounts.suspend(ctx, mine.account_id, "too many bounces")
    account = (await mine.reader.get("/v1/account")).json()["account"]
    assert (account["status"], account["suspended_reason"]) == ("suspended", "too many bounces")


async def test_the_ledger_is_read_in_parts_newest_first(
    ctx: context.Context, mine: Office, clock: contexts.Clock
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


async def test_a_reservation_names_its_message(ctx: context.Context, mine: Office, clock: contexts.Clock) -> None:
    await mailing.allow(ctx, mine.account_id)
    clock.pass_seconds(1)
    message_id = await mailing.accept(ctx, mine.account_id)
    newest = (await mine.owner.get("/v1/account/ledger")).json()["entries"][0]
    assert (newest["kind"], newest["message_id"]) == ("reserve", message_id)
    assert (newest["available"], newest["reserved"]) == (-1, 1)


async def test_a_ledger_comes_25_at_a_time_unless_told_otherwise(
    ctx: context.Context, mine: Office, clock: contexts.Clock
) -> None:
    for _ in range(26):
        await credits.add(ctx, mine.account_id, 1, None)
        clock.pass_seconds(1)
    assert len((await mine.owner.get("/v1/account/ledger")).json()["entries"]) == 25
    assert len((await mine.owner.get("/v1/account/ledger?limit=100")).json()["entries"]) == 26
