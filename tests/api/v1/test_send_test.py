"""`/v1/test-email`: a user's test message, from the account's own domain, by the rules of all mail."""

import httpx
import pytest

from postroad import context
from tests import accepted_mail
from tests.api.management import AccountClients

PATH = "/v1/test-email"


def check_refusal(response: httpx.Response, status: int, code: str) -> str:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    return str(response.json()["error"])


async def test_a_user_sends_a_test_and_reads_its_result(ctx: context.Context, mine: AccountClients) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    response = await mine.owner.post(PATH, json={"to": "Ada <ada@example.net>"})
    receipt = response.json()
    assert (response.status_code, receipt["source"], receipt["status"]) == (202, "test", "queued")
    assert (receipt["from"], receipt["to"]) == ("hello@example.com", ["Ada <ada@example.net>"])
    assert receipt["request_id"] == response.headers["x-request-id"]
    for path in (f"/emails/{receipt['id']}", f"/v1/messages/{receipt['id']}"):
        assert (await mine.owner.get(path)).json()["source"] == "test"
    assert (await mine.owner.get("/v1/account")).json()["account"]["credits"] == {"available": 999, "reserved": 1}


async def test_the_sender_may_be_chosen_and_has_to_be_the_accounts_own(
    ctx: context.Context, mine: AccountClients, theirs: AccountClients
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    await accepted_mail.allow_sending(ctx, theirs.account_id, domain="theirs.example")
    sent = await mine.owner.post(PATH, json={"to": "ada@example.net", "from": "Shop <shop@example.com>"})
    assert (sent.status_code, sent.json()["from"]) == (202, "Shop <shop@example.com>")
    for domain in ("theirs.example", "nobody.example"):
        refused = await mine.owner.post(PATH, json={"to": "ada@example.net", "from": f"shop@{domain}"})
        assert check_refusal(refused, 403, "forbidden") == (
            f"from: {domain} is not a domain of this account; add the domain first"
        )


async def test_an_account_without_a_domain_is_told_to_add_one(mine: AccountClients) -> None:
    sentence = check_refusal(await mine.owner.post(PATH, json={"to": "ada@example.net"}), 409, "conflict")
    assert sentence.startswith("from: no domain of this account can send yet; add a domain")


@pytest.mark.parametrize(
    "body",
    [
        {"to": "no address"},
        {"to": ["ada@example.net"]},
        {"to": "a@example.net\r\nBcc: b@example.net"},
        {"to": "ada@example.net", "from": ""},
    ],
)
async def test_what_is_no_address_is_refused(
    ctx: context.Context, mine: AccountClients, body: dict[str, object]
) -> None:
    await accepted_mail.allow_sending(ctx, mine.account_id)
    check_refusal(await mine.owner.post(PATH, json=body), 400, "invalid_request")
    assert (await mine.owner.get("/v1/messages")).json()["messages"] == []
