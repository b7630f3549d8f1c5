"""`GET /emails/{id}`: the contract's members as they are, and the queue for those who ask for it."""

import pytest

from postroad import context
from postroad.services.messages import queue_inspection
from postroad.storage.mail import queue_views
from tests import accepted_mail, contexts, queue_steps
from tests.api.management import AccountClients

MEMBERS = (
    "id email status billing_status attempt_count last_smtp_code last_smtp_response delivered_at bounced_at".split()
)


@pytest.fixture
async def message_id(ctx: context.Context, mine: AccountClients) -> str:
    """A message with one recipient that was deferred and one that is ready."""
    await accepted_mail.allow_sending(ctx, mine.account_id)
    made = await accepted_mail.accept(ctx, mine.account_id, to=("ada@example.net", "bob@example.net"))
    (key,) = await queue_steps.claim(ctx, mine.account_id)
    await queue_steps.defer(ctx, key)
    return made


async def test_on_request_each_recipient_says_when_it_is_tried_next_and_why_not_earlier(
    ctx: context.Context, mine: AccountClients, message_id: str, clock: contexts.Clock
) -> None:
    ada, bob = (await mine.reader.get(f"/emails/{message_id}?include=queue")).json()["recipients"]
    assert list(ada) == [*MEMBERS, "queue"]
    assert ada["queue"] == {
        "state": "waiting",
        "next_attempt_at": "2027-01-15T08:04:00.000Z",
        "reason": {
            "code": "deferred",
            "text": "Google asked us to try later (4.7.1); next attempt at 2027-01-15 08:04:00 UTC",
        },
        "ahead": 0,
    }
    assert bob["queue"]["reason"] == {"code": "ready", "text": "ready; waiting for a free worker"}
    await queue_inspection.cancel(ctx, [queue_views.Filter(recipient_id=ada["id"])])
    final, _ = (await mine.reader.get(f"/emails/{message_id}?include=queue")).json()["recipients"]
    assert (final["status"], final["queue"]) == ("failed", None)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "?expand=queue",
        "?Include=queue",
        "?%ff",
        "?include=",
        "?include=Queue",
        "?include=queue&include=queue",
        "?" + "&".join("abc" * 40),
    ],
)
async def test_whoever_does_not_ask_gets_the_members_of_the_contract(
    mine: AccountClients, message_id: str, query: str
) -> None:
    response = await mine.reader.get(f"/emails/{message_id}{query}")
    assert response.status_code == 200
    assert [list(one) for one in response.json()["recipients"]] == [MEMBERS, MEMBERS]
