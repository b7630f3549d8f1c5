"""`/v1/statistics` shows what the caller's mail has come to, and nobody else's."""

import pytest

from postroad import context
from postroad.model.bounces import disposition
from tests import accepted_mail
from tests.api.management import AccountClients
from tests.services import claimed_mail

ZEROS = {"messages": 0, "recipients": 0, "delivered": 0, "bounced": 0, "failed": 0, "deferred": 0}


async def test_mail_is_shown_with_its_results_its_failures_and_what_waits(
    ctx: context.Context, mine: AccountClients
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id, (gone, taken, _) = await claimed_mail.another(
        ctx, mine.account_id, "a@example.net", "b@example.net", "c@example.net"
    )
    words = "<b>nobody</b> here"
    bounced = claimed_mail.outcome(ctx, gone, disposition.Verdict.BOUNCED, recipient_count=3, code=550, response=words)
    await ctx.outcome_commits.submit(
        [bounced, claimed_mail.outcome(ctx, taken, disposition.Verdict.DELIVERED, recipient_count=3)]
    )
    response = await mine.reader.get("/v1/statistics")
    assert response.status_code == 200
    answer = response.json()
    assert answer["request_id"] == response.headers["x-request-id"]
    found = answer["statistics"]
    counts = ZEROS | {"messages": 1, "recipients": 3, "delivered": 1, "bounced": 1}
    assert (found["period"], found["totals"], found["before"], found["queued"]) == ("24h", counts, ZEROS, 1)
    assert found["series"][-1] == {"at": "2027-01-15T08:00:00.000Z", **counts}
    assert found["series"][0] == {"at": "2027-01-14T09:00:00.000Z", **ZEROS}
    counts = {"delivered": 1, "bounced": 1, "failed": 0, "deferred": 0, "blocked": 0, "complaints": 0}
    assert found["providers"] == [{"name": "others", **counts}]
    assert found["causes"] == [
        {
            "cause": "because",
            "provider": "others",
            "bounced": 1,
            "failed": 0,
            "explanation": disposition.explain("because"),
        }
    ]
    assert (found["oldest"]["email"], found["oldest"]["state"]) == ("c@example.net", "sending")
    assert (found["oldest"]["message_id"], found["oldest"]["reason"]) == (message_id, "being sent")
    assert found["failures"] == [
        {
            "message_id": message_id,
            "recipient_id": gone.key[2],
            "email": "a@example.net",
            "at": "2027-01-15T08:00:00.000Z",
            "verdict": "bounced",
            "smtp_code": 550,
            "smtp_response": words,
            "fault": None,
            "reason": "because",
            "explanation": disposition.explain("because"),
        }
    ]


@pytest.mark.parametrize("period, parts", [("24h", 24), ("7d", 28), ("30d", 30), ("90d", 90)])
async def test_each_period_has_its_parts(mine: AccountClients, period: str, parts: int) -> None:
    found = (await mine.owner.get("/v1/statistics", params={"period": period})).json()["statistics"]
    assert (found["period"], len(found["series"])) == (period, parts)


@pytest.mark.parametrize("query", ["period=1d", "period=", "period=24H", "period=%00", "period=7d&period=7d", "days=7"])
async def test_other_periods_are_refused_with_a_word_about_it(mine: AccountClients, query: str) -> None:
    response = await mine.owner.get(f"/v1/statistics?{query}")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
    assert query.partition("=")[0] in response.json()["error"]


async def test_what_waits_says_when_it_is_tried_again(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    _, (claimed,) = await claimed_mail.another(ctx, mine.account_id, "a@example.net")
    found = (await mine.reader.get("/v1/statistics")).json()["statistics"]["oldest"]
    assert (found["state"], found["next_attempt_at"]) == ("sending", None)
    await ctx.outcome_commits.submit(
        [claimed_mail.outcome(ctx, claimed, disposition.Verdict.RETRY, code=451, response="later")]
    )
    found = (await mine.reader.get("/v1/statistics")).json()["statistics"]["oldest"]
    assert (found["state"], found["reason"]) == (
        "waiting",
        "example.net asked us to try later (2.0.0); next attempt at 2027-01-15 08:00:01 UTC",
    )
    assert (found["next_attempt_at"], found["last_smtp_code"], found["last_smtp_response"]) == (
        "2027-01-15T08:00:01.000Z",
        451,
        "later",
    )
    assert found["next_attempt_at"] == "2027-01-15T08:00:01.000Z"
