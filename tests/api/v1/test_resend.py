"""`POST /v1/messages/{id}/resend`: the receipt, the links between the two messages, keys and refusals."""

from postroad import context
from postroad.services.messages import queue_changes
from tests import accepted_mail
from tests.api.management import AccountClients


async def canceled(ctx: context.Context, mine: AccountClients) -> str:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    message_id = await accepted_mail.accept(ctx, mine.account_id, metadata={"order": "1042"})
    await queue_changes.cancel_message(ctx, mine.account_id, message_id)
    return message_id


async def test_a_message_is_sent_again_once_for_a_key_and_both_name_each_other(
    ctx: context.Context, mine: AccountClients
) -> None:
    first = await canceled(ctx, mine)
    path, key = f"/v1/messages/{first}/resend", {"Idempotency-Key": "resend-1042"}
    assert (await mine.owner.post(path)).json()["error"].startswith("Idempotency-Key: this header is required")
    response = await mine.owner.post(path, headers=key)
    receipt = response.json()
    assert (response.status_code, receipt["resend_of"], receipt["metadata"]) == (202, first, {"order": "1042"})
    assert response.headers["ratelimit-policy"]
    repeated = await mine.owner.post(path, headers=key, json={"recipients": "failed"})
    assert (repeated.content, repeated.headers["idempotent-replayed"]) == (response.content, "true")
    old = (await mine.reader.get(f"/v1/messages/{first}")).json()
    new = (await mine.reader.get(f"/v1/messages/{receipt['id']}")).json()
    assert (old["resent_as"], "resend_of" in old) == ([receipt["id"]], False)
    assert (new["resend_of"], "resent_as" in new, new["status"]) == (first, False, "queued")
    # The contract's own response stays as it is.
    assert "resend_of" not in (await mine.owner.get(f"/emails/{receipt['id']}")).json()


async def test_what_cannot_be_sent_again_is_refused_with_the_reason(ctx: context.Context, mine: AccountClients) -> None:
    first, key = await canceled(ctx, mine), {"Idempotency-Key": "one"}
    path = f"/v1/messages/{first}/resend"
    assert (await mine.reader.post(path, headers=key)).status_code == 403
    wrong = await mine.owner.post(path, headers=key, json={"recipients": "some"})
    assert (wrong.status_code, "recipients" in wrong.json()["error"]) == (400, True)
    unknown = await mine.owner.post(path, headers=key, json={"recipient_id": "rcp_" + "0" * 28})
    assert (unknown.status_code, unknown.json()["error"]) == (
        404,
        "recipient_id: no such recipient in this message",
    )
    await mine.owner.post("/v1/suppressions", json={"email": "ada@example.net"})
    refused = await mine.owner.post(path, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert refused.json()["error"].startswith("ada@example.net: on the suppression list")
