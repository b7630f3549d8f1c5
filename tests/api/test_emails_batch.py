"""`POST /emails/batch` as clients call it: the response, its replay, and what is refused as a whole."""

from typing import Any

from postroad import context
from tests import accepted_mail
from tests.api.management import AccountClients

EMAIL: dict[str, Any] = {"from": "shop@example.com", "to": "ada@example.net", "subject": "Hello", "text": "Hi"}


async def test_a_batch_is_answered_with_its_results_and_again_with_the_same_bytes(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    body = {"emails": [{**EMAIL, "metadata": {"order": "1"}}, {**EMAIL, "to": "nobody"}]}
    response = await mine.owner.post("/emails/batch", json=body, headers={"Idempotency-Key": "b"})
    assert (response.status_code, response.headers["content-type"]) == (202, "application/json")
    (sent, refused), request_id = response.json()["results"], response.json()["request_id"]
    assert set(response.json()) == {"results", "request_id"}
    assert request_id == response.headers["x-request-id"]
    assert response.headers["ratelimit"] == '"account";r=198;t=1'
    assert set(sent) == {"id"}
    assert set(refused) == {"error"}
    assert refused["error"]["code"] == "invalid_request"
    assert refused["error"]["message"].startswith("to: 'nobody' is not an email address")
    shown = await mine.owner.get(f"/emails/{sent['id']}")
    assert (shown.json()["status"], shown.json()["metadata"]) == ("queued", {"order": "1"})
    assert (await theirs.owner.get(f"/emails/{sent['id']}")).status_code == 404

    again = await mine.owner.post("/emails/batch", json=body, headers={"Idempotency-Key": "b"})
    assert (again.status_code, again.content) == (202, response.content)
    assert (again.headers["idempotent-replayed"], again.headers["x-request-id"]) == ("true", request_id)
    other = await mine.owner.post("/emails/batch", json={"emails": [EMAIL]}, headers={"Idempotency-Key": "b"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


async def test_what_is_no_batch_is_refused_with_its_place(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    for body, said in (
        ({"emails": [EMAIL, {**EMAIL, "subject": 7}]}, "emails[1].subject: "),
        ({"emails": [{**EMAIL, "subjekt": "x"}]}, "emails[0].subjekt: "),
        ({"emails": [EMAIL] * 101}, "emails: "),
        ({"emails": []}, "emails: "),
        ({"emails": [EMAIL], "recipients": [{"to": "a@example.net"}]}, "body: give either emails, or recipients"),
        ({"emails": [EMAIL], "text": "x"}, "text: "),
        ({"emails": [EMAIL, {**EMAIL, "to": "x"}], "all_or_nothing": True}, "emails[1]: to: 'x' is not an email"),
    ):
        response = await mine.owner.post("/emails/batch", json=body, headers={"Idempotency-Key": "k"})
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request"), response.text
        assert response.json()["error"].startswith(said), response.text
    without = await mine.owner.post("/emails/batch", json={"emails": [EMAIL]})
    assert (without.status_code, without.json()["error"][:16]) == (400, "Idempotency-Key:")
    reader = await mine.reader.post("/emails/batch", json={"emails": [EMAIL]}, headers={"Idempotency-Key": "k"})
    assert reader.status_code == 403
    assert (await mine.owner.get("/v1/messages")).json()["messages"] == []
